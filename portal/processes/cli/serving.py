"""Commands that run until they are stopped: ``serve``, ``web``, ``worker`` and ``mcp``."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import click

from portal.errors import ServerSetup
from portal.processes.cli.base import COUNT, PORT, load_settings, main, open_services


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=PORT)
@click.option("--data-dir", "serve_data_dir", type=click.Path(path_type=Path))
@click.option(
    "--web-threads", type=COUNT, help="Requests served at once. [default: the setting, 16]"
)
@click.option(
    "--workers", default=1, show_default=True, type=COUNT, help="Processes that read documents."
)
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    serve_data_dir: Path | None,
    web_threads: int | None,
    workers: int,
) -> None:
    """Start everything: the database, the web server and workers."""
    from portal.processes.serving import supervisor

    data_dir = serve_data_dir.resolve() if serve_data_dir else None
    settings = load_settings(ctx, data_dir=data_dir).with_requests_at_once(web_threads)
    ctx.exit(supervisor.serve(settings, host=host, port=port, workers=workers))


@main.command()
@click.pass_context
def worker(ctx: click.Context) -> None:
    """Index documents from the queue until a signal arrives."""
    from portal.observability import logs, metric_files
    from portal.processes.worker import run

    services = open_services(ctx)
    logs.log_uncaught()
    with metric_files.joined(services.settings.data_dir):
        run(services)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=PORT)
@click.option("--web-threads", type=COUNT, help="Requests served at once.")
@click.pass_context
def web(ctx: click.Context, host: str, port: int, web_threads: int | None) -> None:
    """Serve pages and APIs, without workers."""
    from portal.processes.serving import web_server

    settings = load_settings(ctx).with_requests_at_once(web_threads)
    ctx.exit(web_server.run_web(settings, host=host, port=port))


@main.command()
@click.option(
    "--http",
    "over_http",
    is_flag=True,
    help="Serve over HTTP instead of standard input and output.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8001, show_default=True, type=PORT)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    help="A host name that requests may use, besides localhost. May be repeated.",
)
@click.pass_context
def mcp(
    ctx: click.Context, over_http: bool, host: str, port: int, allowed_hosts: tuple[str, ...]
) -> None:
    """Serve AI clients by the Model Context Protocol: search and fetch, as the user whose token is
    in PORTAL_TOKEN or, over HTTP, comes with each request."""
    _require_extra("mcp")
    from portal.integrations.mcp import serving
    from portal.processes.serving import web_server

    if not over_http:
        serving.serve_stdio(open_services(ctx), _read_token())
        return
    services = open_services(ctx)
    with web_server.listen(host, port) as listener:
        click.echo(f"{web_server.address_of(listener)}{serving.PATH}   (Ctrl-C stops it)")
        serving.serve_http(services, listener, allowed_hosts)


def _require_extra(name: str) -> None:
    """Raise ServerSetup if the package of an extra with the same name is not installed."""
    if importlib.util.find_spec(name) is None:
        raise ServerSetup(f"this needs the extra: ./run setup --{name}")


def _read_token() -> str:
    token = os.environ.get("PORTAL_TOKEN", "").strip()
    if not token:
        raise ServerSetup(
            "PORTAL_TOKEN is not set. Make a token that may read on the account page, or by "
            "`portal token NAME`"
        )
    return token
