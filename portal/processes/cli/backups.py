"""Commands ``backup`` and ``restore``."""

from __future__ import annotations

from pathlib import Path

import click

from portal.processes.cli.base import DATA_DIR, load_settings, main


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE once the new backup is complete.")
@click.option(
    "--encrypt/--no-encrypt",
    default=None,
    help="Encrypt for the keys in PORTAL_BACKUP__RECIPIENTS. [default: if there are any]",
)
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    help="Encrypt with the passphrase in the first line of this file instead of for keys.",
)
@DATA_DIR
@click.pass_context
def backup(
    ctx: click.Context, file: Path, force: bool, encrypt: bool | None, passphrase_file: Path | None
) -> None:
    """Write a backup of everything to FILE, which must not exist. The portal may go on serving. The
    backup is verified before it is put in place.

    Without encryption, FILE contains everything in readable form: keep it safe."""
    from portal.processes import backups

    backups.take(
        load_settings(ctx), file, force=force, encrypt=encrypt, passphrase_file=passphrase_file
    )


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a portal that has documents; they are lost.")
@click.option(
    "--rehearse",
    is_flag=True,
    help="Restore into a temporary portal instead; /health shows the result.",
)
@click.option(
    "--identity", type=click.Path(path_type=Path), help="The key file that age-keygen wrote."
)
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    help="A file with the passphrase in its first line.",
)
@DATA_DIR
@click.pass_context
def restore(
    ctx: click.Context,
    file: Path,
    replace: bool,
    rehearse: bool,
    identity: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Restore the portal from the backup FILE. The portal must be stopped, except for a rehearsal.
    A restore that fails or is interrupted changes nothing.

    Restore only files from a source that you trust as much as the portal itself."""
    from portal.processes import backups

    if replace and rehearse:
        raise click.UsageError("Give --replace or --rehearse, not both.")
    backups.put_back(
        load_settings(ctx),
        file,
        replace=replace,
        is_rehearsal=rehearse,
        identity=identity,
        passphrase_file=passphrase_file,
    )
