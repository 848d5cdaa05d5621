"""Moving windows in a process's own memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from cachetools import LRUCache

# Whoever makes up names or addresses is counted by an address or a network that they cannot make
# up as well; that one is always among the latest.
MAX_KEYS = 20_000


class MemoryWindows:
    """When each key was charged, within its window. Safe between threads.

    At most `max_keys` are remembered, the latest. `clock` is seconds since 1970, because
    `X-RateLimit-Reset` tells them.
    """

    def __init__(self, *, max_keys: int = MAX_KEYS, clock: Callable[[], float] = time.time) -> None:
        self._charges: LRUCache[str, deque[float]] = LRUCache(max_keys)
        self._clock = clock
        self._lock = Lock()

    def acquire(self, key: str, limit: int, expiry_s: int, amount: int = 1) -> bool:
        """Charge a key, unless that were more than `limit` times in the last `expiry_s` seconds."""
        with self._lock:
            charges = self._current(key, expiry_s)
            if len(charges) + amount > limit:
                return False
            charges.extend([self._clock()] * amount)
            self._charges[key] = charges
            return True

    def window(self, key: str, expiry_s: int) -> tuple[float, int]:
        """When the first charge that still counts was made, now without any, and how many do."""
        with self._lock:
            charges = self._current(key, expiry_s)
            return (charges[0] if charges else self._clock()), len(charges)

    def give_back(self, key: str) -> None:
        """Take one charge off."""
        with self._lock:
            if charges := self._charges.get(key):
                charges.pop()

    def clear(self, key: str) -> None:
        with self._lock:
            self._charges.pop(key, None)

    def reset(self) -> int:
        """Forget everything; how many keys that were."""
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
