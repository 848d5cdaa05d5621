"""Moving windows of the limiter: in Redis while it answers, else in this process's memory.

Flask-Limiter's own fallback is not used: requests would wait for Redis's socket timeout, and again
at each retry.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from cachetools import LRUCache
from limits.storage import MovingWindowSupport, RedisStorage, Storage

from portal.store.redis_store import RedisStore

SCHEME = "portal"

Result = TypeVar("Result")

# Evicting the oldest keys is safe: an attacker who makes up names is still counted by address, and
# that key is always among the latest.
MAX_KEYS = 20_000


class MemoryWindows:
    """The times when each key was charged within its window, for the latest `max_keys` keys.

    Thread-safe. `clock` returns seconds since 1970, as in `X-RateLimit-Reset`.
    """

    def __init__(self, *, max_keys: int = MAX_KEYS, clock: Callable[[], float] = time.time) -> None:
        self._charges: LRUCache[str, deque[float]] = LRUCache(max_keys)
        self._clock = clock
        self._lock = Lock()

    def acquire(self, key: str, limit: int, expiry_s: int, amount: int = 1) -> bool:
        """Charge a key unless that exceeds `limit` in the last `expiry_s` seconds."""
        with self._lock:
            charges = self._current(key, expiry_s)
            if len(charges) + amount > limit:
                return False
            charges.extend([self._clock()] * amount)
            self._charges[key] = charges
            return True

    def window(self, key: str, expiry_s: int) -> tuple[float, int]:
        """Return the time of the first charge in the window (now without any), and their number."""
        with self._lock:
            charges = self._current(key, expiry_s)
            return (charges[0] if charges else self._clock()), len(charges)

    def refund(self, key: str) -> None:
        """Refund one charge."""
        with self._lock:
            if charges := self._charges.get(key):
                charges.pop()

    def clear(self, key: str) -> None:
        with self._lock:
            self._charges.pop(key, None)

    def reset(self) -> int:
        """Forget everything; return how many keys there were."""
        with self._lock:
            count = len(self._charges)
            self._charges.clear()
            return count

    def _current(self, key: str, expiry_s: int) -> deque[float]:
        charges = self._charges.get(key, deque())
        oldest = self._clock() - expiry_s
        while charges and charges[0] < oldest:
            charges.popleft()
        return charges


class _InRedis(RedisStorage):
    """The library's Redis windows, over the portal's own connections."""

    STORAGE_SCHEME: list[str] = []  # noqa: RUF012 - as the base class has it

    def __init__(self, redis: RedisStore) -> None:
        super().__init__("redis://", redis.client.connection_pool, key_prefix=redis.prefix)
        self._client = redis.client

    def refund(self, key: str) -> None:
        # The newest comes first.
        self._client.lpop(self.prefixed_key(key))


class SharedWindows(MovingWindowSupport, Storage):
    """Moving windows in Redis; while it fails, each process counts in its own memory."""

    STORAGE_SCHEME = [SCHEME]  # noqa: RUF012 - as the base class has it

    def __init__(self, uri: str | None = None, *, redis: RedisStore | None = None) -> None:
        super().__init__(uri)
        self._memory = MemoryWindows()
        self._redis = redis
        self._shared = None if redis is None else _InRedis(redis)

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self._attempt(
            lambda shared: shared.acquire_entry(key, limit, expiry, amount),
            lambda: self._memory.acquire(key, limit, expiry, amount),
        )

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return self._attempt(
            lambda shared: shared.get_moving_window(key, limit, expiry),
            lambda: self._memory.window(key, expiry),
        )

    def refund(self, key: str) -> None:
        """Refund the last charge of a key."""
        self._attempt(lambda shared: shared.refund(key), lambda: self._memory.refund(key))

    def clear(self, key: str) -> None:
        self._attempt(lambda shared: shared.clear(key), lambda: self._memory.clear(key))

    def reset(self) -> int | None:
        return self._attempt(lambda shared: shared.reset(), self._memory.reset)

    def check(self) -> bool:
        """Return True: without Redis there is still memory."""
        return True

    def _attempt(
        self, action: Callable[[_InRedis], Result], otherwise: Callable[[], Result]
    ) -> Result:
        if self._redis is None or (shared := self._shared) is None:
            return otherwise()
        return self._redis.attempt(lambda: action(shared), otherwise)

    # Abstract in the base class; only fixed windows use them.

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        raise NotImplementedError

    def get(self, key: str) -> int:
        raise NotImplementedError

    def get_expiry(self, key: str) -> float:
        raise NotImplementedError
