"""Tables of a load test, from the requests of locust and the samples of the watch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.load.watching import Sample
from bench.report import Rows, markdown

_BLOCK = re.compile(r"(<!-- load -->\n).*?(<!-- /load -->)", re.DOTALL)
# The requests by which a recovery is judged: many, short, and all of one kind.
_JUDGED = "search"
_WINDOW_S = 5.0
_ALLOWED = 1.2
# A user reads between two requests.
_S_BETWEEN_REQUESTS = 10.0


@dataclass(frozen=True)
class Run:
    """`events` are those that `scenario` wrote, `sizes` the result of `machinery.sizes`."""

    events: Sequence[dict[str, Any]]
    samples: Sequence[Sample]
    sizes: tuple[int, int, int]
    settings: dict[str, Any]

    def requests(self, stage: str, name: str | None = None) -> list[dict[str, Any]]:
        return [
            one
            for one in self.events
            if one["in"] == stage and "name" in one and name in {None, one["name"]}
        ]

    def span(self, stage: str) -> tuple[float, float]:
        """Return the beginning and the end of a stage."""
        times = [one["at"] for one in self.events if one["in"] == stage]
        return min(times), max(times)

    def sampled(self, stage: str) -> list[Sample]:
        begin, end = self.span(stage)
        return [one for one in self.samples if begin <= one.at <= end]


def request_rows(run: Run) -> Rows:
    rows = [["request", "count", "p50 ms", "p95 ms", "failed"]]
    names = sorted({one["name"] for one in run.requests("base")})
    for name in names:
        found = run.requests("base", name)
        rows.append(
            [
                name,
                f"{len(found)}",
                f"{_percentile(found, 50):.0f}",
                f"{_percentile(found, 95):.0f}",
                f"{sum(one['outcome'] != 'ok' for one in found)}",
            ]
        )
    return rows


def resource_rows(run: Run) -> Rows:
    samples = run.sampled("base")
    first = samples[0]
    rows = [["resource", "first minute", "most"]]
    for name in first.memory_mb:
        early = np.mean([one.memory_mb[name] for one in samples if one.at < first.at + 60])
        rows.append(
            [
                f"memory of {name}, MB",
                f"{early:.0f}",
                f"{max(s.memory_mb[name] for s in samples):.0f}",
            ]
        )
    rows.append(_most("connections of the database", [one.connections for one in samples]))
    rows.append(_most("idle or slow connections held", [one.idle_clients for one in samples]))
    idle = [round(one.idle_in_transaction_s, 1) for one in samples]
    rows.append(_most("idle in a transaction, s", idle))
    rows.append(_most("longest transaction, s", [round(one.transaction_s, 1) for one in samples]))
    return rows


def _most(name: str, values: Sequence[float]) -> list[str]:
    return [name, "", f"{max(values)}"]


def overload_rows(run: Run) -> Rows:
    found = run.requests("overload")
    counts = {
        kind: sum(one["outcome"] == kind for one in found) for kind in ("ok", "refused", "failed")
    }
    refused = [one for one in found if one["outcome"] == "refused"]
    begin, end = run.span("overload")
    rows = [["under overload", "figure"]]
    rows.append(["requests a second, answered", f"{counts['ok'] / (end - begin):.0f}"])
    rows.append(["refused with 503 or 429 and Retry-After", f"{counts['refused']}"])
    rows.append(
        ["time of a refusal, p95 ms", f"{_percentile(refused, 95):.0f}" if refused else "–"]
    )
    rows.append(["failed otherwise", f"{counts['failed']}"])
    back = seconds_until_recovered(run)
    rows.append(
        [
            f"back to {_ALLOWED} × the p95 of searches after",
            "not in time" if back is None else f"{back:.0f} s",
        ]
    )
    return rows


def seconds_until_recovered(run: Run) -> float | None:
    """Return how many seconds after the overload searches are as fast as before, in a window of
    `_WINDOW_S`; None if they never are."""
    allowed = _ALLOWED * _percentile(run.requests("base", _JUDGED), 95)
    begin, end = run.span("recovery")
    found = run.requests("recovery", _JUDGED)
    for second in range(int(end - begin - _WINDOW_S) + 1):
        start = begin + second
        window = [one for one in found if start <= one["at"] < start + _WINDOW_S]
        is_well = all(one["outcome"] == "ok" for one in window)
        if window and is_well and _percentile(window, 95) <= allowed:
            return float(second)
    return None


def capacity_rows(run: Run) -> Rows:
    samples = run.sampled("base")
    seconds = samples[-1].at - samples[0].at
    cores = (samples[-1].cpu_s - samples[0].cpu_s) / seconds
    a_second = len([one for one in run.requests("base") if one["outcome"] == "ok"]) / seconds
    chunks, database, vectors = run.sizes
    a_core = a_second / cores
    return [
        ["capacity", "figure"],
        ["requests a second", f"{a_second:.1f}"],
        ["cores in use (web, worker, PostgreSQL)", f"{cores:.2f}"],
        ["requests a second and core", f"{a_core:.1f}"],
        [
            f"people a core, one request in {_S_BETWEEN_REQUESTS:.0f} s",
            f"{a_core * _S_BETWEEN_REQUESTS:.0f}",
        ],
        ["chunks a GB of disk", f"{chunks / (database / 2**30):,.0f}"],
        ["chunks a GB of memory that holds the vector index", f"{chunks / (vectors / 2**30):,.0f}"],
    ]


def _percentile(found: Sequence[dict[str, Any]], percent: float) -> float:
    return float(np.percentile([one["ms"] for one in found], percent)) if found else float("nan")


def page_text(run: Run) -> str:
    """Return the text between the marks of docs/limits.md."""
    stages = {name: seconds for name, seconds, _ in run.settings["stages"]}
    users = run.settings["users"]
    head = (
        f"{users} people who do something every {sum(run.settings['pause_s']) / 2:.0f} s for "
        f"{stages['base'] / 60:.0f} minutes, then {run.settings['overload']} without a pause for "
        f"{stages['overload']:.0f} s; {run.settings['documents']:,} documents, "
        f"{run.settings['accounts']:,} accounts, one web process and one worker on a machine of "
        f"{run.settings['cores']} cores that also runs PostgreSQL and the people"
        f" (load before: {run.settings['load_before']:.1f})."
    )
    tables = (request_rows, resource_rows, overload_rows, capacity_rows)
    return "\n".join([f"{head}\n", *(markdown(make(run)) for make in tables)])


def write_page(text: str, page: Path) -> None:
    found = page.read_text(encoding="utf-8")
    page.write_text(_BLOCK.sub(lambda m: f"{m[1]}{text}{m[2]}", found), encoding="utf-8")
