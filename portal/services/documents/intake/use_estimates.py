"""Estimates of each owner's stored bytes, for uploads that are far from the quota."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from uuid import UUID

from cachetools import LRUCache

_MAX_OWNERS = 10_000
_ESTIMATE_LIFE_S = 30
# Below this share of the limit an estimate is enough, although other processes may add to it.
_FAR_FROM_FULL = 0.5


@dataclass(slots=True)
class UseEstimates:
    """Recently counted bytes of owners, plus what this process has stored since. Errs on the high
    side within this process. Thread-safe. Summing up a thousand documents takes milliseconds, too
    long for each file of an import that is far from the limit."""

    _known: LRUCache[UUID, tuple[int, float]] = field(
        default_factory=lambda: LRUCache(_MAX_OWNERS), repr=False
    )
    _lock: Lock = field(default_factory=Lock, repr=False)

    def reserve(self, owner_id: UUID, size_bytes: int, *, limit_bytes: int) -> bool:
        """Add to the owner's estimate; return False if it is unknown or near the limit."""
        with self._lock:
            used_bytes, counted_at = self._known.get(owner_id, (limit_bytes, 0.0))
            is_old = time.monotonic() - counted_at > _ESTIMATE_LIFE_S
            if is_old or used_bytes + size_bytes > _FAR_FROM_FULL * limit_bytes:
                return False
            self._known[owner_id] = (used_bytes + size_bytes, counted_at)
            return True

    def set(self, owner_id: UUID, used_bytes: int) -> None:
        with self._lock:
            self._known[owner_id] = (used_bytes, time.monotonic())
