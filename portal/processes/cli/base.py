"""The root of the command line: how errors are printed, and what all commands share."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portal.errors import PortalError
from portal.observability.redaction import escape_controls

if TYPE_CHECKING:
    from portal.services import Services
    from portal.settings import Settings

PORT = click.IntRange(0, 65535)
COUNT = click.IntRange(1, 256)
BATCH_SIZE = click.IntRange(1, 1000)
_INTERRUPTED = 128 + signal.SIGINT  # The exit status that shells use for SIGINT.


class OneLineErrors(click.Group):
    """Report a failure as one line on stderr with exit status 1, Ctrl-C with 130."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PortalError as error:
            message = escape_controls(str(error), keep="\n")
            click.echo(f"portal: {message}", err=True)
            ctx.exit(1)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # Click handles them; it is silent if a reader such as `head` closes the pipe.
        except KeyboardInterrupt:
            click.echo("portal: stopped", err=True)
            ctx.exit(_INTERRUPTED)
        except Exception as error:
            if os.environ.get("PORTAL_LOG_LEVEL", "").lower() == "debug":
                raise
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            first_line = escape_controls(first_line)
            click.echo(f"portal: {first_line} (PORTAL_LOG_LEVEL=debug shows all)", err=True)
            ctx.exit(1)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data-dir", type=click.Path(path_type=Path), help="The data directory.")
@click.pass_context
def main(ctx: click.Context, data_dir: Path | None) -> None:
    """A self-hosted knowledge portal: documents in, cited answers out."""
    ctx.obj = {"data_dir": data_dir.resolve()} if data_dir else {}


def _use_data_dir(ctx: click.Context, _option: click.Parameter, chosen: Path | None) -> None:
    if chosen is not None:
        ctx.obj["data_dir"] = chosen.resolve()


DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The same as that of `portal serve`.",
    expose_value=False,
    callback=_use_data_dir,
)


def load_settings(ctx: click.Context, **overrides: Any) -> Settings:
    """Load the settings; options that were given take precedence."""
    from portal.settings import load_settings

    options = {name: value for name, value in overrides.items() if value is not None}
    return load_settings(**(ctx.obj | options))


def open_services(ctx: click.Context) -> Services:
    """Build services on the configured database, or on the embedded one.

    Uses the embedded server of a running portal, or starts one until the command ends.
    """
    from portal.container import build_services
    from portal.database.embedded import EmbeddedPostgres
    from portal.services.operations import setup
    from portal.services.people import accounts

    settings = load_settings(ctx)
    if settings.database_url:
        return build_services(settings)
    server = EmbeddedPostgres(settings.data_dir)
    was_running = server.is_running()
    ctx.call_on_close(server.leave)
    services = build_services(settings, database_url=server.start())
    ctx.call_on_close(services.database.dispose)
    if not was_running:
        for _step in setup.prepare_database(services):
            pass
        show_administrator(accounts.ensure_first_administrator(services))
    return services


def show_administrator(made: tuple[str, str] | None) -> None:
    """Print the name and password of a new first administrator, on stderr."""
    if made is not None:
        name, password = made
        click.echo(f"administrator: {name}\npassword: {password}   (shown this once)", err=True)
