"""Where a search's time goes: Python, round trips, planning, execution."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from sqlalchemy import event

from bench.corpus import Corpus, Question
from bench.profiles import Profile
from portal.services.searching import search
from portal.store.session import Database

RESULTS = 10
_TIMED = "bench_started"


@dataclass(slots=True)
class _Watch:
    """Statements of the searches so far, and the time until the driver had their rows."""

    statements: int = 0
    seconds: float = 0.0
    plans: list[dict[str, Any]] = field(default_factory=list)
    explains: bool = False


def break_down(
    corpus: Corpus, profile: Profile, questions: Sequence[Question]
) -> dict[str, float | str]:
    """Means in milliseconds over the questions: `total`, `in_database` (round trips of all
    statements) and the rest in Python; of the search statement alone `planning`, `execution`,
    as the server's EXPLAIN says in a run of its own."""
    with _watched(corpus.services.database) as watch:
        started = time.perf_counter()
        for question in questions:
            search(corpus.services, profile.person, profile.request(question.text, top_n=RESULTS))
        total = time.perf_counter() - started
        statements, seconds = watch.statements, watch.seconds
        watch.explains = True
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
        "in_database_ms": round(1000 * seconds / count, 3),
        "python_ms": round(1000 * (total - seconds) / count, 3),
        "statements": round(statements / count, 1),
        "planning_ms": round(mean(plan["Planning Time"] for plan in watch.plans), 3),
        "execution_ms": round(mean(plan["Execution Time"] for plan in watch.plans), 3),
    }


def _plan_text(plan: Any) -> str:
    """The plans of the legs as the explanation names them: "vector exact, keyword index"."""
    if isinstance(plan, dict):
        return ", ".join(f"{leg} {chosen}" for leg, chosen in plan.items())
    return str(plan or "")


@contextmanager
def _watched(database: Database) -> Iterator[_Watch]:
    watch = _Watch()

    def before(_connection: Any, _cursor: Any, _statement: str, _parameters: Any,
               context: Any, _many: bool) -> None:  # fmt: skip
        setattr(context, _TIMED, time.perf_counter())

    def after(connection: Any, _cursor: Any, statement: str, parameters: Any,
              context: Any, _many: bool) -> None:  # fmt: skip
        watch.seconds += time.perf_counter() - getattr(context, _TIMED)
        watch.statements += 1
        if watch.explains and "<=>" in statement:
            # In the same transaction, so that it plans under the same settings.
            explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
            with connection.connection.cursor() as cursor:
                cursor.execute(explain, parameters)
                watch.plans.append(cursor.fetchone()[0][0])

    event.listen(database.engine, "before_cursor_execute", before)
    event.listen(database.engine, "after_cursor_execute", after)
    try:
        yield watch
    finally:
        event.remove(database.engine, "before_cursor_execute", before)
        event.remove(database.engine, "after_cursor_execute", after)
