"""Moments by which something has to be done, however many steps it takes."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """`ends_at` is in seconds of the monotonic clock."""

    ends_at: float

    @classmethod
    def within(cls, seconds: float) -> Self:
        return cls(monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Return the seconds that are left, 0 or more."""
        return max(0.0, self.ends_at - monotonic())

    @property
    def is_over(self) -> bool:
        return self.left_s == 0

    def sooner(self, share: float) -> Deadline:
        """Return a deadline at that share of what is left."""
        return Deadline(self.ends_at - (1 - share) * self.left_s)

    def milliseconds(self) -> str:
        """Return what is left as a time-out of PostgreSQL: 1 or more, for 0 means without end."""
        return str(max(1, int(self.left_s * 1000)))
