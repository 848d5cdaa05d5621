"""Statement parameters in the server's binary form, which it reads many times faster than text."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
from pgvector import Vector as PgVector
from psycopg.adapt import Dumper
from psycopg.pq import Format

from portal.domain.embedding import Vector

_UUID_OID = 2950
_UUID_BYTES = 16
_UUID_LENGTH = struct.pack("!i", _UUID_BYTES)


class BinaryParameter:
    """A value for a bind that is cast to its type."""

    def __init__(self, wire: bytes) -> None:
        self.wire = wire


class VectorParameter(BinaryParameter):
    """A vector, for a bind that is cast to `vector`."""

    def __init__(self, vector: Vector) -> None:
        super().__init__(PgVector(vector).to_binary())


class UuidsParameter(BinaryParameter):
    """UUIDs, or the server's text of an array of them, for a bind that is cast to `uuid[]`."""

    def __init__(self, ids: str | Iterable[UUID]) -> None:
        super().__init__(
            _encode_list(ids) if isinstance(ids, str) else _array(i.bytes for i in ids)
        )

    @classmethod
    def named(cls, names: Iterable[str]) -> BinaryParameter:
        """Return the parameter for UUIDs written as text."""
        return BinaryParameter(_of_names(",".join(names)))


# Each search of a user sends the same array until a document is switched.
@lru_cache(maxsize=16)
def _encode_list(array: str) -> bytes:
    return _of_names(array.strip("{}"))


def _of_names(names: str) -> bytes:
    plain = names.replace("-", "")
    return _array(map(bytes.fromhex, plain.split(","))) if plain else _array(())


def _array(ids: Iterable[bytes]) -> bytes:
    values = [_UUID_LENGTH + identifier for identifier in ids]
    if not values:
        return struct.pack("!iii", 0, 0, _UUID_OID)
    return struct.pack("!iiiii", 1, 0, _UUID_OID, len(values), 1) + b"".join(values)


class _BinaryDumper(Dumper):
    # Without a type the server uses that of the cast: the OID of `vector` differs by database.
    format = Format.BINARY
    oid = 0

    def dump(self, obj: BinaryParameter) -> bytes:
        return obj.wire


def send_binary(driver: psycopg.Connection[Any]) -> None:
    """Register BinaryParameter as a value type of a connection."""
    driver.adapters.register_dumper(BinaryParameter, _BinaryDumper)
