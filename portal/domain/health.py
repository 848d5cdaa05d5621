"""The last known health of a dependency."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class HealthSample:
    """Whether something worked when it was last used; `at` is monotonic seconds."""

    ok: bool
    at: float = field(default_factory=time.monotonic)


@runtime_checkable
class Monitored(Protocol):
    """Something that notes how its last use in this process went."""

    @property
    def health(self) -> HealthSample | None:
        """Return the last sample; None before the first use."""

    def probe(self) -> None:
        """Use it for something small. Raises the same errors as any other use."""
