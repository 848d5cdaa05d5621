"""A clock for tests of what depends on time."""

from __future__ import annotations


class Clock:
    """A monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
