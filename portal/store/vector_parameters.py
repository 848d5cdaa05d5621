"""Vectors as parameters of statements, sent in pgvector's binary form."""

from __future__ import annotations

from typing import Any

import psycopg
from pgvector import Vector as PgVector
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portal.domain.embedding import Vector


class VectorParameter:
    """A vector as a value for a bind that is cast to `vector`, sent as it lies in memory: written
    out as text it costs a millisecond, and as much again where it is read."""

    def __init__(self, vector: Vector) -> None:
        self.wire = PgVector(vector).to_binary()


class _VectorDumper(Dumper):
    # Without a type the server takes that of the cast, whose number each database has its own.
    format = Format.BINARY
    oid = 0

    def dump(self, obj: VectorParameter) -> bytes:
        return obj.wire


def send_vectors(driver: psycopg.Connection[Any]) -> None:
    """Have a connection take VectorParameters as values."""
    driver.adapters.register_dumper(VectorParameter, _VectorDumper)
