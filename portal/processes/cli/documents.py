"""Commands that import documents: ``import`` and ``import-chroma``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from portal.processes.cli.base import BATCH_SIZE, DATA_DIR, main, open_services

if TYPE_CHECKING:
    from portal.domain.vector_collections import Distance


@main.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--owner", default="admin", show_default=True, help="The owner of the documents.")
@click.option("--domain", help="Their domain.")
@click.option("--private", is_flag=True, help="Visible to the owner and administrators only.")
@click.option("--into", default="", help="The folder to put them in, such as contracts/2026.")
@click.option("--wait", is_flag=True, help="Wait until all of them are ready or failed.")
@DATA_DIR
@click.pass_context
def import_documents(
    ctx: click.Context,
    paths: tuple[Path, ...],
    owner: str,
    domain: str | None,
    private: bool,
    into: str,
    wait: bool,
) -> None:
    """Import files and folders, which keep their tree. Safe to stop and run again: nothing is
    stored twice, and what failed is retried.

    Exits with status 1 when something failed."""
    from portal.domain.documents import Visibility
    from portal.processes.importing import import_and_wait

    visibility = Visibility.PRIVATE if private else Visibility.SHARED
    status = import_and_wait(
        open_services(ctx),
        paths,
        owner=owner,
        domain=domain,
        visibility=visibility,
        into=into,
        wait=wait,
    )
    ctx.exit(status)


@main.command("import-chroma")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option(
    "--collection", "names", multiple=True, help="Import only this collection. May be repeated."
)
@click.option("--prefix", default="", help="A prefix for the names of the collections here.")
@click.option(
    "--distance",
    type=click.Choice(["cosine", "l2", "ip"]),
    help="The distance of new collections. [default: what Chroma uses]",
)
@click.option(
    "--document-key",
    default="resource_hash",
    show_default=True,
    help="Records with the same value of this metadata key make up one document.",
)
@click.option("--keep", is_flag=True, help="Keep records that exist here, even where they differ.")
@click.option("--batch-size", type=BATCH_SIZE, default=500, show_default=True)
@click.option("--tenant", default="default_tenant", show_default=True, help="In Chroma.")
@click.option("--database", default="default_database", show_default=True, help="In Chroma.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def import_chroma(
    ctx: click.Context,
    directory: Path,
    dry_run: bool,
    names: tuple[str, ...],
    prefix: str,
    distance: Distance | None,
    document_key: str,
    keep: bool,
    batch_size: int,
    tenant: str,
    database: str,
    as_json: bool,
) -> None:
    """Import the collections of a Chroma directory, for PostgresVectorStore. Safe to stop and run
    again: nothing is stored twice, and the directory is not changed.

    Exits with status 1 when something could not be imported."""
    from portal.integrations.chroma.client import chroma
    from portal.integrations.chroma_import.moving import Options
    from portal.integrations.chroma_import.reading import Tenancy
    from portal.integrations.chroma_import.snapshot import check_directory
    from portal.processes.cli.chroma_import import import_and_show

    chroma()
    check_directory(directory)  # Fails before a database is started.
    options = Options(
        batch_size=batch_size,
        prefix=prefix,
        distance=distance,
        document_key=document_key or None,
        keeps=keep,
        is_dry_run=dry_run,
    )
    tenancy = Tenancy(tenant, database)
    ctx.exit(
        import_and_show(open_services(ctx), directory, options, names, tenancy, as_json=as_json)
    )
