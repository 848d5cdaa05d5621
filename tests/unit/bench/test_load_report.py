"""The tables of a load test match its requests and samples."""

from __future__ import annotations

from typing import Any

import pytest

from bench.load import report
from bench.load.watching import Sample

SETTINGS = {
    "stages": [("base", 60, 8), ("overload", 10, 32), ("recovery", 30, 8)],
    "users": 8,
    "overload": 32,
    "pause_s": (4.0, 12.0),
    "documents": 1000,
    "accounts": 20,
    "cores": 2,
    "load_before": 0.5,
}


def event(at: float, stage: str, ms: float, outcome: str = "ok") -> dict[str, Any]:
    return {"at": at, "in": stage, "name": "search", "ms": ms, "outcome": outcome, "status": 200}


def sample(at: float, cpu_s: float) -> Sample:
    return Sample(at, {"web": 500.0 + at}, cpu_s, 12, 3, 0.0, 0.2, 100)


@pytest.fixture
def run() -> report.Run:
    base = [event(at, "base", 100.0) for at in range(60)]
    overload = [event(60 + at, "overload", 900.0, "refused") for at in range(10)]
    slow = [event(70 + at, "recovery", 500.0) for at in range(8)]
    well = [event(78 + at, "recovery", 110.0) for at in range(22)]
    samples = [sample(at, cpu_s=at * 0.5) for at in range(0, 60, 2)]
    return report.Run([*base, *overload, *slow, *well], samples, (1000, 2**30, 2**28), SETTINGS)


def test_recovery_is_the_first_moment_at_which_searches_are_as_fast_as_before(
    run: report.Run,
) -> None:
    assert report.seconds_until_recovered(run) == 8


def test_no_recovery_is_reported_as_none(run: report.Run) -> None:
    never = [one | {"ms": 500.0} if one["in"] == "recovery" else one for one in run.events]
    assert (
        report.seconds_until_recovered(report.Run(never, run.samples, run.sizes, SETTINGS)) is None
    )


def test_users_per_core_are_computed_from_processor_time(run: report.Run) -> None:
    rows = dict(report.capacity_rows(run)[1:])
    # Half a core serves 1 request/s, so a core serves 2: 20 users with one request in 10 s each.
    assert float(rows["cores in use (web, worker, PostgreSQL)"]) == 0.5
    people = int(rows["people a core, one request in 10 s"])
    assert people == pytest.approx(20, abs=1)
    assert rows["chunks a GB of disk"] == "1,000"


def test_table_of_resources_contains_only_figures(run: report.Run) -> None:
    cells = [cell for _, *row in report.resource_rows(run)[1:] for cell in row if cell]
    assert all(float(cell) >= 0 for cell in cells)


def test_page_states_the_duration_and_the_load(run: report.Run) -> None:
    text = report.page_text(run)
    assert "8 people" in text
    assert "1 minutes" in text
    assert "| refused with 503 or 429 and Retry-After | 10 |" in text
