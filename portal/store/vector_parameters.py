"""Vectors as statement parameters, sent in pgvector's binary form."""

from __future__ import annotations

from typing import Any

import psycopg
from pgvector import Vector as PgVector
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portal.domain.embedding import Vector


class VectorParameter:
    """A vector as a value for a bind that is cast to `vector`, sent as it lies in memory:
    converting it to text costs a millisecond, and parsing it as much again."""

    def __init__(self, vector: Vector) -> None:
        self.wire = PgVector(vector).to_binary()


class _VectorDumper(Dumper):
    # Without a type the server uses that of the cast, whose OID differs between databases.
    format = Format.BINARY
    oid = 0

    def dump(self, obj: VectorParameter) -> bytes:
        return obj.wire


def send_vectors(driver: psycopg.Connection[Any]) -> None:
    """Register VectorParameter as a value type of a connection."""
    driver.adapters.register_dumper(VectorParameter, _VectorDumper)
