"""Addresses from which a name has signed in before: strangers who guess at it elsewhere do not keep
those out who come from there, programs among them, which show no note of their own (`devices`).

Kept in Redis while there is one, and in this process's memory: after a restart without Redis an
address is known again once somebody has signed in from it.
"""

from __future__ import annotations

from threading import Lock

from cachetools import TTLCache

from portal.limits.memory import MAX_KEYS
from portal.store.redis_store import RedisStore

_LIFE_S = 30 * 24 * 3600


class KnownAddresses:
    """Safe between threads. `who` is an address together with the digest of a name."""

    def __init__(self, redis: RedisStore | None) -> None:
        self._redis = redis
        self._kept: TTLCache[str, None] = TTLCache(MAX_KEYS, _LIFE_S)
        self._lock = Lock()

    def note(self, who: str) -> None:
        """Remember that somebody signed in so."""
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
