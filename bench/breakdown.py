"""Where a search's time goes: Python, round trips, and the steps in its explanation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean
from typing import Any
from unittest.mock import patch

import psycopg

from bench.corpus import Corpus, Question
from bench.corpus.profiles import Profile


@dataclass(slots=True)
class _Watch:
    """Round trips of the searches so far, and seconds spent waiting for them."""

    waits: int = 0
    seconds: float = 0.0


# The steps of a search in its explanation, and their names here.
_STEPS = {
    "configuration_ms": ("configuration", "selection"),
    "words_ms": ("keyword_selection",),
    "statement_ms": ("statement",),
    "results_ms": ("results",),
}


def break_down(
    corpus: Corpus, profile: Profile, questions: Sequence[Question]
) -> dict[str, float | str]:
    """Return means over the questions: `total_ms`, `in_database_ms` (waiting for the server) and
    `python_ms` (the rest). Times of the steps come from a separate run of explained searches."""
    with _waiting() as watch:
        started = time.perf_counter()
        for question in questions:
            corpus.search(profile, question)
        total = time.perf_counter() - started
    explained = [
        corpus.search(profile, question, explain=True).explanation or {} for question in questions
    ]
    spent = [one.get("milliseconds", {}) for one in explained]
    count = len(questions)
    return {
        "plan": _plan_text(explained[0].get("plan")),
        "total_ms": round(1000 * total / count, 3),
        "in_database_ms": round(1000 * watch.seconds / count, 3),
        "python_ms": round(1000 * (total - watch.seconds) / count, 3),
        "waits": round(watch.waits / count, 1),
        **{
            name: round(mean(sum(one.get(step, 0.0) for step in steps) for one in spent), 3)
            for name, steps in _STEPS.items()
        },
    }


def _plan_text(plan: Any) -> str:
    """Return the legs' plans as in the explanation: "vector exact, keyword index"."""
    if isinstance(plan, dict):
        return ", ".join(f"{leg} {chosen}" for leg, chosen in plan.items())
    return str(plan or "")


@contextmanager
def _waiting() -> Iterator[_Watch]:
    """Measure how long the driver waits, for every kind of statement."""
    watch, wait = _Watch(), psycopg.Connection.wait

    def timed(connection: Any, *values: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return wait(connection, *values, **named)
        finally:
            watch.seconds += time.perf_counter() - started
            watch.waits += 1

    with patch.object(psycopg.Connection, "wait", timed):
        yield watch
