"""Tables of the figures, for the terminal and for docs/performance.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.folders import report as folder_report
from bench.ingest import report as ingest_report

Rows = list[list[str]]
MakeRows = Callable[[dict[str, Any]], Rows]

# The page's text between these marks is generated from a run.
_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- /bench -->)", re.DOTALL)


def print_tables(console: Console, size: int, figures: dict[str, Any]) -> None:
    """Print all tables of one corpus."""
    console.print(f"\n[bold]{size} chunks in {figures['documents']} documents[/bold]")
    for make in _OF_A_SIZE.values():
        rows = make(figures)
        if len(rows) > 1:
            _print_table(console, rows)


def print_part(console: Console, name: str, measured: dict[str, Any]) -> None:
    """Print all tables of a part other than the searches at each size."""
    part = PARTS[name]
    console.print(f"\n[bold]{part.title}[/bold]: {part.describe(measured)}")
    for make in part.tables.values():
        _print_table(console, make(measured))


def upkeep_rows(upkeep: dict[str, Any]) -> Rows:
    """Return the rows of a corpus's upkeep: the work, and searches meanwhile."""
    rows = [["work", "s", "undo, s", "searches meanwhile, p50 ms", "p95 ms"]]
    for one in upkeep["rows"]:
        cells = [f"{one[name]:,.1f}" if name in one else "" for name in ("s", "undo_s")]
        cells += [_ms(one[name]) if name in one else "" for name in ("p50_ms", "p95_ms")]
        rows.append([one["work"], *cells])
    return rows


def page_rows(pages: dict[str, Any]) -> Rows:
    """Return the times of interactions with pages."""
    kinds = {"next paint": "paint", "shown": "shown", "processor": "thread"}
    columns = [words for kind in kinds for words in (f"{kind}, p50 ms", "p95 ms")]
    head = ["interaction", "count", *columns[:2], "goal", *columns[2:]]
    names = [f"{name}_p{at}_ms" for name in kinds.values() for at in (50, 95)]
    rows = [head]
    for one in pages["rows"]:
        paint_p50, paint_p95, *others = (f"{one[name]:.0f}" for name in names)
        goal = "met" if one["paint_p95_ms"] <= pages["goal_ms"] else "missed"
        goal = f"≤ {pages['goal_ms']} ms, {goal}"
        count = str(one["count"])
        rows.append([one["interaction"], count, paint_p50, paint_p95, goal, *others])
    return rows


def _print_table(console: Console, rows: Rows) -> None:
    table = Table()
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if place == 0 else "right")
    for row in rows[1:]:
        table.add_row(*row)
    console.print(table)


def search_rows(figures: dict[str, Any]) -> Rows:
    head = ["enabled", "chunks", "p50 ms", "p95 ms", "p99 ms", "p50, p95 after a switch"]
    head += ["recall@10 vectors", "recall@10 hybrid", "× bare scans"]
    rows = [head]
    for one in figures["portal"]:
        after = one.get("switched_just_before")
        ratio = figures["ratio_to_bare"].get(one["profile"])
        rows.append(
            [
                one["profile"],
                f"{one['passages']:,}",
                *(_ms(one[name]) for name in ("p50_ms", "p95_ms", "p99_ms")),
                f"{_ms(after['p50_ms'])}, {_ms(after['p95_ms'])}" if after else "",
                f"{one['vector_recall']:.3f}",
                f"{one['hybrid_recall']:.3f}",
                f"{ratio:.1f}" if ratio else "",
            ]
        )
    return rows


def bare_rows(figures: dict[str, Any]) -> Rows:
    return [
        ["bare index scan", "p50 ms", "p95 ms"],
        *(
            [name.removeprefix("bare "), _ms(one["p50_ms"]), _ms(one["p95_ms"])]
            for name, one in figures["bare"].items()
        ),
    ]


_STEPS = ("configuration", "words", "statement", "results")


def time_rows(figures: dict[str, Any]) -> Rows:
    head = ["enabled", "plan", "whole ms", "Python", "round trips", "waits"]
    rows = [[*head, "what is in force", "words", "statement", "results"]]
    for one in figures["portal"]:
        spent = one["breakdown"]
        times = ("total_ms", "python_ms", "in_database_ms")
        rows.append(
            [
                one["profile"],
                spent["plan"],
                *(_ms(spent[name]) for name in times),
                f"{spent['waits']:g}",
                *(_ms(spent[f"{step}_ms"]) for step in _STEPS),
            ]
        )
    return rows


def http_rows(figures: dict[str, Any]) -> Rows:
    """Return the time that the application and a socket add to a search."""
    rows = [["way", "p50 ms", "p95 ms", "p50 added ms", "× search call"]]
    for one in figures["http"]:
        times = (_ms(one[name]) for name in ("p50_ms", "p95_ms", "added_ms"))
        rows.append([one["way"], *times, f"{one['ratio']:.2f}"])
    return rows


def promise_rows(v1: dict[str, Any]) -> Rows:
    """Return the times of /v1, next to the promised ones."""
    head = "over HTTP, requests, degraded, p50 ms, p95 ms, p99 ms, goal for p95, processor ms"
    rows = [head.split(", ")]
    for one in v1["rows"]:
        times = (_ms(one[name]) for name in ("p50_ms", "p95_ms", "p99_ms"))
        is_met = "met" if one["p95_ms"] < one["goal_ms"] else "missed"
        rows.append(
            [
                one["path"],
                str(one["searches"]),
                str(one["degraded"]),
                *times,
                f"< {one['goal_ms']:.0f} ms, {is_met}",
                _ms(one["processor_ms"]),
            ]
        )
    return rows


def load_rows(figures: dict[str, Any]) -> Rows:
    """Return searches per second by number of clients."""
    counts = list(dict.fromkeys(one["clients"] for one in figures["load"]))
    names = list(dict.fromkeys(one["profiles"] for one in figures["load"]))
    by_place = {(one["profiles"], one["clients"]): one for one in figures["load"]}
    names_of = [f"{count} client{'' if count == 1 else 's'}" for count in counts]
    rows = [["enabled", *(f"{name}: searches/s, p95 ms" for name in names_of)]]
    for name in names:
        loads = [by_place[name, count] for count in counts]
        rows.append(
            [name, *(f"{one['searches_a_second']:.0f}, {_ms(one['p95_ms'])}" for one in loads)]
        )
    return rows


def peer_rows(figures: dict[str, Any]) -> Rows:
    """Return the figures of the portal's hybrid search and of its peers, in the same run."""
    rows = [["enabled", "engine", "p50 ms", "p95 ms", "recall@10"]]
    peers = figures["peers"]
    for one in figures["portal"]:
        beside = [peer for peer in peers if peer["profile"] == one["profile"]]
        if beside:
            cells = [_ms(one["p50_ms"]), _ms(one["p95_ms"]), f"{one['hybrid_recall']:.3f}"]
            rows.append([one["profile"], "portal, hybrid", *cells])
        for peer in beside:
            cells = [_ms(peer["p50_ms"]), _ms(peer["p95_ms"]), f"{peer['recall']:.3f}"]
            rows.append(["", f"{peer['engine']}, {peer['kind']}", *cells])
    return rows


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


_OF_A_SIZE: dict[str, MakeRows] = {
    "search": search_rows,
    "bare": bare_rows,
    "time": time_rows,
    "http": http_rows,
    "load": load_rows,
    "peers": peer_rows,
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the benchmark: a sentence on what was measured, and tables by their marks in the
    page. The sentence has a mark of its own, or is above the only table."""

    title: str
    describe: Callable[[dict[str, Any]], str]
    tables: dict[str, MakeRows]
    mark: str | None = None


PARTS = {
    "ingest": Part(
        "Ingest",
        ingest_report.corpus_text,
        {
            "ingest": ingest_report.pipeline_rows,
            "ingest_parts": ingest_report.part_rows,
            "ingest_model": ingest_report.model_rows,
        },
        mark="ingest_corpus",
    ),
    "v1": Part(
        "/v1",
        lambda v1: (
            f"{v1['documents']:,} documents, questions embedded by {v1['model']}, a chat model "
            f"that answers after {v1['model_latency_s']:g} s, or quotations."
        ),
        {"v1": promise_rows},
    ),
    "folders": Part(
        "Folders",
        folder_report.corpus_text,
        {
            "folders": folder_report.read_rows,
            "folder_changes": folder_report.change_rows,
            "folder_searches": folder_report.meanwhile_rows,
        },
        mark="folder_corpus",
    ),
    "pages": Part(
        "Pages",
        lambda pages: f"{pages['documents']:,} documents in folders.",
        {"pages": page_rows},
    ),
    "upkeep": Part(
        "Upkeep", lambda upkeep: f"{upkeep['passages']:,} chunks.", {"upkeep": upkeep_rows}
    ),
}


def write_page(figures: dict[str, Any], page: Path) -> None:
    """Replace the measured sections between the page's marks and leave the rest."""
    blocks: dict[str, str] = {}
    if figures["sizes"]:
        blocks = {name: _for_each_size(figures, make) for name, make in _OF_A_SIZE.items()}
        blocks["machine"] = _machine_text(figures)
    for name, part in PARTS.items():
        if name in figures:
            blocks |= _part_blocks(part, figures[name], figures["load_before"])
    text = page.read_text(encoding="utf-8")
    filled = _BLOCK.sub(lambda match: match[1] + blocks.get(match[2], match[3]) + match[4], text)
    page.write_text(filled, encoding="utf-8")


def _part_blocks(part: Part, measured: dict[str, Any], load: float) -> dict[str, str]:
    head = f"{part.describe(measured)} Load before it: {measured.get('load_before', load):g}.\n"
    tables = {name: markdown(make(measured)) for name, make in part.tables.items()}
    if part.mark:
        return {part.mark: head} | tables
    return {name: f"{head}\n{table}" for name, table in tables.items()}


def _machine_text(figures: dict[str, Any]) -> str:
    machine = figures["machine"]
    packages = ", ".join(
        f"{name.removeprefix('package ')} {value}"
        for name, value in machine.items()
        if name.startswith("package ") and value
    )
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"PostgreSQL {machine['PostgreSQL']} (shared_buffers {machine['shared_buffers']}), "
        f"pgvector {machine['vector']}, pg_textsearch {machine.get('pg_textsearch', 'absent')}; "
        f"Python {machine['python']} with {packages}. "
        f"Load before it: {figures['load_before']}. The run took {figures['minutes']} minutes.\n"
    )


def _for_each_size(figures: dict[str, Any], make: MakeRows) -> str:
    parts = []
    for size, one in figures["sizes"].items():
        rows = make(one)
        if len(rows) > 1:
            parts.append(
                f"{int(size):,} chunks in {one['documents']:,} documents:\n\n{markdown(rows)}"
            )
    return "\n".join(parts)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---", *("---:" for _ in head[1:])], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
