"""Commands about embedding models: ``models …`` and ``reindex``."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from portal.processes.cli.base import BATCH_SIZE, main, open_services
from portal.services.models.builds import Progress
from portal.services.models.comparison import Comparison
from portal.services.models.switching import ModelSummary, Switched


@main.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List embedding models and their vectors; switch between them."""
    if ctx.invoked_subcommand is None:
        from portal.processes.cli.models import show_models
        from portal.services.models import switching

        show_models(switching.list_models(open_services(ctx)))


_FORCE = click.option(
    "--force", is_flag=True, help="Switch even if some chunks have no vector yet."
)


@models.command("switch")
@click.argument("name")
@_FORCE
@click.pass_context
def switch_model(ctx: click.Context, name: str, force: bool) -> None:
    """Use a model that was built, from the next search on."""
    from portal.processes.cli.models import show_switch
    from portal.services.models import switching

    show_switch(switching.switch(open_services(ctx), name, force=force))


@models.command("rollback")
@_FORCE
@click.pass_context
def rollback_model(ctx: click.Context, force: bool) -> None:
    """Go back to the model that was used before."""
    from portal.processes.cli.models import show_switch
    from portal.services.models import switching

    show_switch(switching.rollback(open_services(ctx), force=force))


@models.command("drop")
@click.argument("name")
@click.confirmation_option("--yes", prompt="Delete the model and all its vectors?")
@click.pass_context
def drop_model(ctx: click.Context, name: str) -> None:
    """Delete a model that is not in use, with its vectors."""
    from portal.services.models import switching

    switching.drop(open_services(ctx), name)
    click.echo(f"dropped {name}")


@models.command("compare")
@click.argument("first")
@click.argument("second")
@click.option(
    "--questions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of question sets for ./run eval. [default: sentences of stored chunks]",
)
@click.pass_context
def compare_models(ctx: click.Context, first: str, second: str, questions: Path | None) -> None:
    """Compare what two models find for the same questions."""
    from portal.processes.cli.models import show_comparison
    from portal.services.models import comparison

    services = open_services(ctx)
    show_comparison(comparison.compare(services, first, second, questions_dir=questions))


@main.command()
@click.option(
    "--model",
    "spec",
    help="A model of `portal models`, a provider, PROVIDER:MODEL[@DIMENSIONS], or a directory.",
)
@click.option("--switch", "and_switch", is_flag=True, help="Use it once it is built.")
@click.option("--batch-size", type=BATCH_SIZE, help="Chunks embedded and stored at once.")
@click.pass_context
def reindex(ctx: click.Context, spec: str | None, and_switch: bool, batch_size: int | None) -> None:
    """Embed the chunks that have no vector yet, with a new model or the current one, while searches
    go on. Safe to stop and run again."""
    from portal.processes.cli.models import show_progress, show_switch
    from portal.services.models import builds, switching
    from portal.services.models import catalog as model_service

    services = open_services(ctx)
    serving = model_service.ensure_serving(services)
    model = model_service.register(services, spec) if spec else serving
    show_progress(model.name, builds.build(services, model.name, batch_size=batch_size))
    if and_switch and model.id != serving.id:
        show_switch(switching.switch(services, model.name))


# Programs that read a table want every column whole.
_WIDTH_WITHOUT_TERMINAL = 200
_MEGABYTE = 1024 * 1024


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_TERMINAL
    return console


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
    _console().print(table)


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
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = _console(stderr=True)
    total = 0
    with closing(build) as steps, Bar(*columns, console=console) as bar:
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
    console = _console()
    console.print(table)
    console.print(
        f"{result.questions} questions ({source}); the ten nearest passages of both models"
        f" have {result.overlap_10:.0%} in common",
        markup=False,
    )


def show_switch(result: Switched) -> None:
    before = f" instead of {result.before.name}" if result.before else ""
    _console().print(
        f"{result.model.name} serves{before} ({1000 * result.duration_s:.0f} ms)", markup=False
    )
