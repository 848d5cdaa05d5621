"""What was last seen of something that others depend on, and when."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether it did what it was asked for; `at` is monotonic seconds."""

    is_well: bool
    at: float = field(default_factory=time.monotonic)


@runtime_checkable
class Watched(Protocol):
    """Something that remembers how it was when this process last asked it."""

    @property
    def seen(self) -> Seen | None:
        """Return the last state; None when it was not probed yet."""

    def look(self) -> None:
        """Ask it itself, for something small. Raises what it raises when it cannot be used."""
