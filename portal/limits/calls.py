"""Rate limits of calls that are not HTTP requests: the tools of AI clients."""

from __future__ import annotations

import math
import time
from functools import lru_cache

from limits import RateLimitItem, parse_many
from limits.strategies import MovingWindowRateLimiter

from portal.domain.people import User
from portal.errors import RateLimited
from portal.limits.storage import SharedWindows
from portal.services import Services


class CallLimits:
    """Counts calls per user in moving windows, across processes with Redis. Thread-safe."""

    def __init__(self, services: Services) -> None:
        self._settings = services.settings.rate_limits
        self._windows = MovingWindowRateLimiter(SharedWindows(redis=services.redis))

    def count(self, user: User, what: str, *, limit: str) -> None:
        """Count a call of `what` by a user; `limit` is a field of RateLimitSettings. Raises
        RateLimited."""
        if not self._settings.enabled:
            return
        for allowed in _parse(str(getattr(self._settings, limit))):
            key = (f"user {user.id}", what)
            if not self._windows.hit(allowed, *key):
                window = self._windows.get_window_stats(allowed, *key)
                raise RateLimited(seconds=seconds_until(window.reset_time))


def seconds_until(reset_time: float) -> int:
    """Return the whole seconds, at least one, until the window has room again."""
    return max(1, math.ceil(reset_time - time.time()))


@lru_cache(maxsize=16)
def _parse(limits: str) -> list[RateLimitItem]:
    return parse_many(limits)
