"""What a cache of bytes can do that several processes share."""

from __future__ import annotations

from typing import Protocol


class SharedCache(Protocol):
    """Never raises: a cache that cannot be reached knows nothing and keeps nothing."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, value: bytes, *, ttl_s: int) -> None:
        """Keep it for so many seconds at most."""
        ...
