"""The port of a cache that several processes share."""

from __future__ import annotations

from typing import Protocol


class SharedCache(Protocol):
    """A cache of bytes. Never raises: an unreachable cache finds and stores nothing."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, value: bytes, *, ttl_s: int) -> None:
        """Store a value for at most this many seconds."""
        ...
