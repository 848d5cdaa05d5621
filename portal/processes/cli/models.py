"""Commands about embedding models: ``models …`` and ``reindex``."""

from __future__ import annotations

from pathlib import Path

import click

from portal.processes.cli.base import BATCH_SIZE, main, open_services


@main.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List embedding models and their vectors; switch between them."""
    if ctx.invoked_subcommand is None:
        from portal.processes.cli.model_tables import show_models
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
    from portal.processes.cli.model_tables import show_switch
    from portal.services.models import switching

    show_switch(switching.switch(open_services(ctx), name, force=force))


@models.command("rollback")
@_FORCE
@click.pass_context
def rollback_model(ctx: click.Context, force: bool) -> None:
    """Go back to the model that was used before."""
    from portal.processes.cli.model_tables import show_switch
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
    from portal.processes.cli.model_tables import show_comparison
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
    from portal.processes.cli.model_tables import show_progress, show_switch
    from portal.services.models import builds, switching
    from portal.services.models import catalog as model_service

    services = open_services(ctx)
    serving = model_service.ensure_serving(services)
    model = model_service.register(services, spec) if spec else serving
    show_progress(model.name, builds.build(services, model.name, batch_size=batch_size))
    if and_switch and model.id != serving.id:
        show_switch(switching.switch(services, model.name))
