"""Moving windows in a process's own memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from cachetools import LRUCache

# Evicting the oldest keys is safe: an attacker who makes up names is still counted by address, and
# that key is always among the latest.
MAX_KEYS = 20_000


class MemoryWindows:
    """Keep when each key was charged within its window, for the latest `max_keys` keys.

    Safe between threads. `clock` gives seconds since 1970, as `X-RateLimit-Reset` does.
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

    def give_back(self, key: str) -> None:
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
