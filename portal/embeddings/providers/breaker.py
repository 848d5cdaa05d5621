"""A circuit breaker: an endpoint that keeps failing is not called for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class CircuitBreaker:
    """Open after `failures` failures in a row, for `pause_s`; then one attempt may probe.

    Thread-safe. `clock` is monotonic seconds.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        pause_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_failures = failures
        self._pause_s = pause_s
        self._clock = clock
        self._failures = 0
        self._probe_at = 0.0
        self._lock = threading.Lock()

    def remaining_s(self) -> float:
        """Return the seconds until an attempt is allowed; 0 claims it and blocks the others."""
        with self._lock:
            if self._failures < self._max_failures:
                return 0.0
            remaining = self._probe_at - self._clock()
            if remaining > 0:
                return remaining
            # The first caller probes; the others are refused until the probe is back.
            self._probe_at = self._clock() + self._pause_s
            return 0.0

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._max_failures:
                self._probe_at = self._clock() + self._pause_s
