"""How a search ran, for its explanation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from portal.observability import tracing
from portal.store.search.legs.statements import KeywordPlan, Shape, VectorPlan
from portal.store.search.selection.enabled import EnabledSet


@dataclass(slots=True)
class Trace:
    """The plan of each leg, the enabled set, and the milliseconds per step of all attempts."""

    vector_plan: VectorPlan | None = None
    keyword_plan: KeywordPlan | None = None
    enabled: EnabledSet | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)

    def note_plans(self, shape: Shape) -> None:
        """Record the plan of each leg."""
        self.vector_plan = shape.vector.plan if shape.vector else None
        self.keyword_plan = shape.keyword.plan if shape.keyword else None

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the duration of a step."""
        started = perf_counter()
        try:
            with tracing.span(f"search.{step}"):
                yield
        finally:
            spent = (perf_counter() - started) * 1000
            self.milliseconds[step] = round(self.milliseconds.get(step, 0.0) + spent, 3)
