"""Tables and a progress bar for `portal models` and `portal reindex`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing

from rich.table import Table

from portal.processes.cli.console import open_console, open_progress
from portal.services.models.builds import Progress
from portal.services.models.comparison import Comparison
from portal.services.models.switching import ModelSummary, Switched

_MEGABYTE = 1024 * 1024


def show_models(summaries: Iterable[ModelSummary]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "provider", "dimensions", "status", "vectors", "size", "index",
                    "active since"):  # fmt: skip
        table.add_column(heading)
    for summary in summaries:
        model = summary.model
        since = model.activated_at if model.status == "active" else None
        table.add_row(
            model.name,
            model.provider,
            str(model.dimensions),
            _status(summary),
            f"{summary.size.vectors}/{summary.coverage.chunks}",
            f"{summary.size.size_bytes / _MEGABYTE:.1f} MB",
            _index(summary),
            f"{since:%Y-%m-%d %H:%M}" if since else "",
        )
    open_console().print(table)


def _status(summary: ModelSummary) -> str:
    words: str = summary.model.status
    if summary.is_previous:
        words += ", to roll back to"
    if summary.build.stage:
        words += f", {summary.build.stage}"
    return words


def _index(summary: ModelSummary) -> str:
    if summary.size.index is None:
        return "none yet"
    options = " ".join(f"{name}={value}" for name, value in summary.size.index.options.items())
    return f"{summary.size.index.method} {summary.model.shape.vector_type} {options}"


def show_progress(name: str, build: Generator[Progress]) -> None:
    """Show a bar on stderr until a build ends; Ctrl-C ends the build."""
    console = open_console(stderr=True)
    total = 0
    with closing(build) as steps, open_progress(console, "{task.description:<10}") as bar:
        task = bar.add_task("embedding", total=None)
        for step in steps:
            total = step.total
            bar.update(task, description=step.stage, completed=step.done, total=max(1, step.total))
    console.print(f"{name}: {total} passages embedded and indexed", markup=False)


def show_comparison(result: Comparison) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "hit@1", "hit@10", "MRR@10", "embed ms", "search ms"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for score in result.scores:
        table.add_row(
            score.name,
            f"{score.hit_1:.3f}",
            f"{score.hit_10:.3f}",
            f"{score.mrr_10:.3f}",
            f"{score.embed_ms:.1f}",
            f"{score.search_ms:.1f}",
        )
    source = "sentences taken from stored passages" if result.kind == "sampled" else "your set"
    console = open_console()
    console.print(table)
    console.print(
        f"{result.questions} questions ({source}); the ten nearest passages of both models"
        f" have {result.overlap_10:.0%} in common",
        markup=False,
    )


def show_switch(result: Switched) -> None:
    before = f" instead of {result.before.name}" if result.before else ""
    open_console().print(
        f"{result.model.name} serves{before} ({1000 * result.duration_s:.0f} ms)", markup=False
    )
