"""Deadlines of work in several steps."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A deadline; `ends_at` is in seconds of the monotonic clock."""

    ends_at: float

    @classmethod
    def within(cls, seconds: float) -> Self:
        return cls(monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Return the remaining seconds, 0 or more."""
        return max(0.0, self.ends_at - monotonic())

    @property
    def is_over(self) -> bool:
        return self.left_s == 0

    def at_share(self, share: float) -> Deadline:
        """Return the deadline of a share of the remaining time."""
        return Deadline(self.ends_at - (1 - share) * self.left_s)

    def milliseconds(self) -> str:
        """Return the remaining time as a PostgreSQL timeout: at least 1 ms, since 0 means none."""
        return str(max(1, int(self.left_s * 1000)))
