"""Statement parameters in the server's binary form, which it reads many times faster than text."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import psycopg
from pgvector import Vector as PgVector
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portal.domain.embedding import Vector

_UUID_OID = 2950
_UUID_BYTES = 16


class BinaryParameter:
    """A value for a bind that is cast to its type."""

    def __init__(self, wire: bytes) -> None:
        self.wire = wire


class VectorParameter(BinaryParameter):
    """A vector, for a bind that is cast to `vector`."""

    def __init__(self, vector: Vector) -> None:
        super().__init__(PgVector(vector).to_binary())


class UuidsParameter(BinaryParameter):
    """UUIDs as the server lists them in text, for a bind that is cast to `uuid[]`."""

    def __init__(self, array: str) -> None:
        super().__init__(_uuids(array))


# Each search of a user sends the same array until a document is switched.
@lru_cache(maxsize=16)
def _uuids(array: str) -> bytes:
    names = array.strip("{}").replace("-", "")
    if not names:
        return struct.pack("!iii", 0, 0, _UUID_OID)
    length = struct.pack("!i", _UUID_BYTES)
    values = bytes.fromhex(length.hex() + names.replace(",", length.hex()))
    count = len(values) // (len(length) + _UUID_BYTES)
    return struct.pack("!iiiii", 1, 0, _UUID_OID, count, 1) + values


class _BinaryDumper(Dumper):
    # Without a type the server uses that of the cast: the OID of `vector` differs by database.
    format = Format.BINARY
    oid = 0

    def dump(self, obj: BinaryParameter) -> bytes:
        return obj.wire


def send_binary(driver: psycopg.Connection[Any]) -> None:
    """Register BinaryParameter as a value type of a connection."""
    driver.adapters.register_dumper(BinaryParameter, _BinaryDumper)
