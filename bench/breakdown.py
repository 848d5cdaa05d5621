"""Where a search's time goes: Python, round trips, planning, execution."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.rows import scalar_row
from sqlalchemy import text

from bench.corpus import Corpus, Question
from bench.profiles import Profile
from portal.services.searching import search
from portal.store import search as passage_search
from portal.store.tuning import fetch_under

RESULTS = 10


@dataclass(slots=True)
class _Watch:
    """What the searches so far waited for: round trips, and seconds until their answers came."""

    waits: int = 0
    seconds: float = 0.0
    plans: list[dict[str, Any]] = field(default_factory=list)


def break_down(
    corpus: Corpus, profile: Profile, questions: Sequence[Question]
) -> dict[str, float | str]:
    """Means in milliseconds over the questions: `total`, `in_database` (waiting for the server) and
    the rest in Python; of the search statement alone `planning`, `execution`, as the server's
    EXPLAIN says in a run of its own."""
    with _waiting() as watch:
        started = time.perf_counter()
        for question in questions:
            search(corpus.services, profile.person, profile.request(question.text, top_n=RESULTS))
        total = time.perf_counter() - started
    with _explaining(watch):
        for question in questions:
            search(corpus.services, profile.person, profile.request(question.text, top_n=RESULTS))
    explained = search(
        corpus.services,
        profile.person,
        profile.request(questions[0].text, top_n=RESULTS, explain=True),
    )
    count = len(questions)
    return {
        "plan": _plan_text((explained.explanation or {}).get("plan")),
        "total_ms": round(1000 * total / count, 3),
        "in_database_ms": round(1000 * watch.seconds / count, 3),
        "python_ms": round(1000 * (total - watch.seconds) / count, 3),
        "waits": round(watch.waits / count, 1),
        "planning_ms": round(mean(plan["Planning Time"] for plan in watch.plans), 3),
        "execution_ms": round(mean(plan["Execution Time"] for plan in watch.plans), 3),
    }


def _plan_text(plan: Any) -> str:
    """The plans of the legs as the explanation names them: "vector exact, keyword index"."""
    if isinstance(plan, dict):
        return ", ".join(f"{leg} {chosen}" for leg, chosen in plan.items())
    return str(plan or "")


@contextmanager
def _waiting() -> Iterator[_Watch]:
    """Times the driver's waiting, however a statement was sent."""
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


@contextmanager
def _explaining(watch: _Watch) -> Iterator[None]:
    """Has the server explain each search statement besides, under the same settings."""

    def explained(session: Any, settings: Any, clause: Any, binds: Any, rows: Any) -> Any:
        explain = text(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {clause.text}")
        plans = fetch_under(session, settings, explain, binds, scalar_row)
        watch.plans.append(plans[0][0])
        return fetch_under(session, settings, clause, binds, rows)

    with patch.object(passage_search, "fetch_under", explained):
        yield
