"""Addresses from which a name has signed in before.

They are counted apart, so that guesses from elsewhere do not lock out the owner or their programs,
which carry no device cookie (`devices`). Kept in Redis and in this process's memory.
"""

from __future__ import annotations

from threading import Lock

from cachetools import TTLCache

from portal.limits.memory import MAX_KEYS
from portal.store.redis_store import RedisStore

_LIFE_S = 30 * 24 * 3600


class KnownAddresses:
    """Remember addresses with the digest of a name (`who`). Safe between threads."""

    def __init__(self, redis: RedisStore | None) -> None:
        self._redis = redis
        self._kept: TTLCache[str, None] = TTLCache(MAX_KEYS, _LIFE_S)
        self._lock = Lock()

    def note(self, who: str) -> None:
        """Remember a sign-in that succeeded."""
        with self._lock:
            self._kept[who] = None
        if self._redis is not None:
            self._redis.put(_key(who), b"1", ttl_s=_LIFE_S)

    def has(self, who: str) -> bool:
        with self._lock:
            if who in self._kept:
                return True
        return self._redis is not None and self._redis.get(_key(who)) is not None


def _key(who: str) -> str:
    return f"known {who}"
