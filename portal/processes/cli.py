"""The command line: ``portal serve``, ``portal import`` and the rest."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from portal.errors import PortalError, ServerSetup
from portal.observability.redaction import escape_controls

if TYPE_CHECKING:
    from portal.domain.vector_collections import Distance
    from portal.services import Services
    from portal.settings import Settings

PORT = click.IntRange(0, 65535)
COUNT = click.IntRange(1, 256)
COUNT_A_BATCH = click.IntRange(1, 1000)
_MAX_TOKEN_S = 10 * 365 * 86400
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


_INTERRUPTED = 128 + signal.SIGINT  # As shells say it.


class OneLineErrors(click.Group):
    """Report a failure as one line on stderr with exit status 1, Ctrl-C with 130."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PortalError as error:
            message = escape_controls(str(error), keep="\n")
            click.echo(f"portal: {message}", err=True)
            ctx.exit(1)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
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
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where the portal keeps things.")
@click.pass_context
def main(ctx: click.Context, data_dir: Path | None) -> None:
    """A self-hosted knowledge portal: documents in, cited answers out."""
    ctx.obj = {"data_dir": data_dir.resolve()} if data_dir else {}


def _use_data_dir(ctx: click.Context, _option: click.Parameter, chosen: Path | None) -> None:
    if chosen is not None:
        ctx.obj["data_dir"] = chosen.resolve()


ISSUER = click.option("--issuer", help="Whose subject it is, where the settings name two issuers.")
OTHER_DATA_DIR = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="As `portal serve` was given it.",
    expose_value=False,
    callback=_use_data_dir,
)


def _settings(ctx: click.Context, **overrides: Any) -> Settings:
    from portal.settings import load_settings

    given = {name: value for name, value in overrides.items() if value is not None}
    return load_settings(**(ctx.obj | given))


def _services(ctx: click.Context) -> Services:
    """Build services on the configured database, or on the embedded one.

    That is joined if a portal is running, else started for the duration of the command.
    """
    from portal.container import build_services
    from portal.database.embedded import EmbeddedPostgres
    from portal.services.operations import setup
    from portal.services.people import accounts

    settings = _settings(ctx)
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
        _show_administrator(accounts.ensure_first_administrator(services))
    return services


def _show_administrator(made: tuple[str, str] | None) -> None:
    """Print the name and password of a new first administrator, on stderr."""
    if made is not None:
        name, password = made
        click.echo(f"administrator: {name}\npassword: {password}   (shown this once)", err=True)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=PORT)
@click.option("--data-dir", "serve_data_dir", type=click.Path(path_type=Path))
@click.option(
    "--web-threads", type=COUNT, help="Requests served at once. [default: as the settings say, 16]"
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
    """Start everything: database, web and workers."""
    from portal.processes import supervisor

    data_dir = serve_data_dir.resolve() if serve_data_dir else None
    settings = _settings(ctx, data_dir=data_dir).with_requests_at_once(web_threads)
    ctx.exit(supervisor.serve(settings, host=host, port=port, workers=workers))


@main.command()
@click.pass_context
def worker(ctx: click.Context) -> None:
    """Read documents from the queue until a signal."""
    from portal.observability import logs, metric_files
    from portal.processes.worker import run

    services = _services(ctx)
    logs.log_uncaught()
    with metric_files.joined(services.settings.data_dir):
        run(services)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True, type=PORT)
@click.option("--web-threads", type=COUNT, help="Requests served at once.")
@click.pass_context
def web(ctx: click.Context, host: str, port: int, web_threads: int | None) -> None:
    """Serve the pages and the APIs, without workers."""
    from portal.processes import supervisor

    settings = _settings(ctx).with_requests_at_once(web_threads)
    ctx.exit(supervisor.run_web(settings, host=host, port=port))


@main.command()
@click.option("--to", "revision", default="head", help="A revision; `base` drops everything.")
@click.option("--check", is_flag=True, help="Only say whether models and migrations are in step.")
@click.pass_context
def migrate(ctx: click.Context, revision: str, check: bool) -> None:
    """Bring the database to the newest schema; the first time, make the administrator."""
    from portal.services.operations import setup
    from portal.services.people import accounts

    services = _services(ctx)
    if check:
        left = setup.schema_differences(services)
        for difference in left:
            click.echo(str(difference), err=True)
        ctx.exit(1 if left else 0)
    for line in setup.prepare_database(services, revision=revision):
        click.echo(line)
    if revision == "head":
        _show_administrator(accounts.ensure_first_administrator(services))


def _read_password(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


@main.group()
def user() -> None:
    """Accounts."""


@user.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="May manage users and all documents.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_context
def create_user(ctx: click.Context, name: str, admin: bool, password_stdin: bool) -> None:
    """Make an account."""
    from portal.services.people import accounts

    password = _read_password(from_stdin=password_stdin)
    user = accounts.create_user(_services(ctx), name=name, password=password, is_admin=admin)
    click.echo(f"created {user.name}")


@user.command("second-factor")
@click.argument("name")
@click.option("--remove", is_flag=True, help="Remove all: the password alone then signs in.")
@click.pass_context
def show_second_factors(ctx: click.Context, name: str, remove: bool) -> None:
    """Show or remove the two-step verification of an account."""
    from portal.services.people import accounts, second_factors

    services = _services(ctx)
    user = accounts.find_user(services, name)
    found = second_factors.load(services, user.id)
    if remove:
        if not found.is_on:
            raise click.ClickException(f"{user.name} has no second factor")
        second_factors.remove_all(services, None, user.id)
        click.echo(f"removed the second factors of {user.name}")
        return
    click.echo(f"authenticator app: {'yes' if found.totp else 'no'}")
    click.echo(f"passkeys: {', '.join(one.name for one in found.passkeys) or 'none'}")
    click.echo(f"recovery codes left: {found.recovery_codes_left}")


@user.command("password")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_context
def set_user_password(ctx: click.Context, name: str, password_stdin: bool) -> None:
    """Set a user's password. All their sessions and tokens end."""
    from portal.services.people import accounts, administration

    services = _services(ctx)
    accounts.find_user(services, name)  # Before a password is typed in vain.
    password = _read_password(from_stdin=password_stdin)
    administration.set_password(services, name, password)
    click.echo(f"set the password of {name}; all their sessions and tokens have ended")


@user.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(["admin", "user"]))
@click.pass_context
def set_user_role(ctx: click.Context, name: str, role: str) -> None:
    """Make a user an administrator, or an ordinary user."""
    from portal.services.people import administration

    administration.set_role_by_name(_services(ctx), name, is_admin=role == "admin")
    click.echo(f"{name} is now {'an administrator' if role == 'admin' else 'an ordinary user'}")


@user.command("delete")
@click.argument("name")
@click.option(
    "--documents",
    type=click.Choice(["transfer", "keep-shared", "trash", "purge"]),
    required=True,
    help="transfer: all go to the user of --to. keep-shared: shared ones go to an administrator, "
    "private ones are erased. trash: all go into the trash. purge: all are erased.",
)
@click.option("--to", "heir", default="", help="Who gets the documents that are transferred.")
@click.confirmation_option("--yes", prompt="Delete the account? This cannot be undone.")
@click.pass_context
def delete_user(ctx: click.Context, name: str, documents: str, heir: str) -> None:
    """Delete an account with its conversations and tokens."""
    from portal.domain.people import DocumentFate
    from portal.services.operations import account_deletion

    fate = DocumentFate(documents.replace("-", "_"))
    if bool(heir) != (fate is DocumentFate.TRANSFER):
        raise click.UsageError("--to goes with --documents transfer, and is needed there")
    services = _services(ctx)
    account_deletion.delete_account_by_name(services, name, documents=fate, heir_name=heir)
    click.echo(f"deleted {name}")


@user.command("link")
@click.argument("name")
@click.argument("subject")
@ISSUER
@click.pass_context
def link_user(ctx: click.Context, name: str, subject: str, issuer: str | None) -> None:
    """Let tokens and sign-ins of an issuer whose `sub` is SUBJECT open an account."""
    from portal.services.people import outside_accounts

    outside_accounts.link(_services(ctx), name=name, subject=subject, issuer=issuer)
    click.echo(f"linked {subject} to {name}")


@user.command("unlink")
@click.argument("subject")
@ISSUER
@click.pass_context
def unlink_user(ctx: click.Context, subject: str, issuer: str | None) -> None:
    """Let them open no account, from the next request on."""
    from portal.services.people import outside_accounts

    was_linked = outside_accounts.unlink(_services(ctx), subject=subject, issuer=issuer)
    click.echo(f"unlinked {subject}" if was_linked else f"{subject} was not linked")


@main.command()
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="From this day on (UTC).")
@click.option("--event", help="Only this event, such as sign_in_failed.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, with every column.")
@click.pass_context
def audit(ctx: click.Context, since: datetime | None, event: str | None, as_csv: bool) -> None:
    """Print the audit log: who did what, when and from where; latest first."""
    from portal.domain.people.audit import AuditEvent, AuditFilter
    from portal.services.operations import audit_log

    if event is not None and event not in set(AuditEvent):
        raise click.BadParameter(f"one of {', '.join(AuditEvent)}", param_hint="--event")
    chosen = AuditFilter(
        event=AuditEvent(event) if event else None,
        since=since.replace(tzinfo=UTC) if since else None,
    )
    entries = audit_log.read_all(_services(ctx), chosen)
    for line in audit_log.csv_lines(entries) if as_csv else audit_log.plain_lines(entries):
        click.echo(line, nl=False)


@main.command()
@click.argument("name")
@click.option("--expires", default="1h", show_default=True, help="Such as 30m, 12h or 7d.")
@click.pass_context
def token(ctx: click.Context, name: str, expires: str) -> None:
    """Print an access token (JWT) for an account."""
    from portal.services.people import accounts, sessions

    ttl_s = _duration_s(expires)
    services = _services(ctx)
    user = accounts.find_user(services, name)
    click.echo(sessions.token_for(services, user, ttl_s=ttl_s))


def _duration_s(words: str) -> int:
    number, unit = words[:-1], words[-1:]
    if unit not in _UNITS_S or not number.isdecimal() or not int(number):
        raise click.BadParameter("a number and s, m, h or d, such as 1h", param_hint="--expires")
    seconds = int(number) * _UNITS_S[unit]
    if not 0 < seconds <= _MAX_TOKEN_S:
        raise click.BadParameter("between 1s and ten years", param_hint="--expires")
    return seconds


@main.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--owner", default="admin", show_default=True, help="Whose documents they become.")
@click.option("--domain", help="The domain they belong to.")
@click.option("--private", is_flag=True, help="Only for the owner and administrators.")
@click.option("--into", default="", help="The folder that they lie in, such as contracts/2026.")
@click.option("--wait", is_flag=True, help="Stay until all of them are ready or failed.")
@OTHER_DATA_DIR
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
    """Take in files and folders, which keep their tree. Safe to stop and to repeat: what is there
    already is not stored twice, and what failed is tried again.

    The exit status is 1 when something failed."""
    from portal.domain.documents import Visibility
    from portal.processes.importing import import_and_wait

    visibility = Visibility.PRIVATE if private else Visibility.SHARED
    status = import_and_wait(
        _services(ctx),
        paths,
        owner=owner,
        domain=domain,
        visibility=visibility,
        into=into,
        wait=wait,
    )
    ctx.exit(status)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE, when the new backup is whole.")
@click.option(
    "--encrypt/--no-encrypt",
    default=None,
    help="Encrypt for the keys in PORTAL_BACKUP__RECIPIENTS. [default: if there are any]",
)
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    help="Encrypt with the passphrase in the first line of this file, and not for keys.",
)
@OTHER_DATA_DIR
@click.pass_context
def backup(
    ctx: click.Context,
    file: Path,
    force: bool,
    encrypt: bool | None,
    passphrase_file: Path | None,
) -> None:
    """Write all that the portal keeps into FILE, which must not exist. The portal may serve
    meanwhile. The file is read back before it is put in place.

    Without encryption, FILE gives everything away: keep it as safe as the portal."""
    from portal.processes import backups

    backups.take(
        _settings(ctx), file, force=force, encrypt=encrypt, passphrase_file=passphrase_file
    )


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Also where the portal has documents: they are lost.")
@click.option("--identity", type=click.Path(path_type=Path), help="The file that age-keygen wrote.")
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path),
    help="A file with the passphrase in its first line.",
)
@OTHER_DATA_DIR
@click.pass_context
def restore(
    ctx: click.Context,
    file: Path,
    replace: bool,
    identity: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Make the portal what it was when the backup FILE was taken. The portal must be stopped. What
    fails or is interrupted leaves it as it was.

    FILE must come from a source you trust like the portal itself."""
    from portal.processes import backups

    backups.put_back(
        _settings(ctx),
        file,
        replace=replace,
        identity=identity,
        passphrase_file=passphrase_file,
    )


@main.command("import-chroma")
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option(
    "--collection", "names", multiple=True, help="Of all collections only this. May be repeated."
)
@click.option("--prefix", default="", help="Put before the names that collections have here.")
@click.option(
    "--distance",
    type=click.Choice(["cosine", "l2", "ip"]),
    help="For new collections, in the place of what Chroma says.",
)
@click.option(
    "--document-key",
    default="resource_hash",
    show_default=True,
    help="Records with the same metadata under this name make up one document.",
)
@click.option("--keep", is_flag=True, help="Leave records that are there, also where they differ.")
@click.option("--batch-size", type=COUNT_A_BATCH, default=500, show_default=True)
@click.option("--tenant", default="default_tenant", show_default=True, help="Of Chroma's.")
@click.option("--database", default="default_database", show_default=True, help="Of Chroma's.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
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
    """Take over the collections of a Chroma directory, for PostgresVectorStore. Safe to stop and to
    repeat: nothing is stored twice, and the directory stays as it is.

    The exit status is 1 when something of it is not here afterwards."""
    from portal.integrations.chroma.client import chroma
    from portal.integrations.chroma_import.command import Options, Tenancy, import_and_show
    from portal.integrations.chroma_import.snapshot import check_directory

    chroma()
    check_directory(directory)  # Before a database is started for it.
    options = Options(
        batch_size=batch_size,
        prefix=prefix,
        distance=distance,
        document_key=document_key or None,
        keeps=keep,
        is_dry_run=dry_run,
    )
    tenancy = Tenancy(tenant, database)
    ctx.exit(import_and_show(_services(ctx), directory, options, names, tenancy, as_json=as_json))


@main.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List embedding models and what they hold; switch between them."""
    if ctx.invoked_subcommand is None:
        from portal.processes.modelling import show_models
        from portal.services.models import switching

        show_models(switching.list_models(_services(ctx)))


FORCE = click.option(
    "--force", is_flag=True, help="Switch even if some passages have not been embedded yet."
)


@models.command("switch")
@click.argument("name")
@FORCE
@click.pass_context
def switch_model(ctx: click.Context, name: str, force: bool) -> None:
    """Let searches use a model that was built, from the next search on."""
    from portal.processes.modelling import show_switch
    from portal.services.models import switching

    show_switch(switching.switch(_services(ctx), name, force=force))


@models.command("rollback")
@FORCE
@click.pass_context
def rollback_model(ctx: click.Context, force: bool) -> None:
    """Go back to the model that served before."""
    from portal.processes.modelling import show_switch
    from portal.services.models import switching

    show_switch(switching.rollback(_services(ctx), force=force))


@models.command("drop")
@click.argument("name")
@click.confirmation_option("--yes", prompt="Erase the model with all its vectors?")
@click.pass_context
def drop_model(ctx: click.Context, name: str) -> None:
    """Erase a model that does not serve, with its vectors."""
    from portal.services.models import switching

    switching.drop(_services(ctx), name)
    click.echo(f"dropped {name}")


@models.command("compare")
@click.argument("first")
@click.argument("second")
@click.option(
    "--questions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of question sets as ./run eval takes; else sentences of stored passages.",
)
@click.pass_context
def compare_models(ctx: click.Context, first: str, second: str, questions: Path | None) -> None:
    """Ask two models the same questions, and say what each finds."""
    from portal.processes.modelling import show_comparison
    from portal.services.models import comparison

    services = _services(ctx)
    show_comparison(comparison.compare(services, first, second, questions_dir=questions))


@main.command()
@click.option(
    "--model",
    "spec",
    help="A model of `portal models`, a provider, PROVIDER:MODEL[@DIMENSIONS], or a directory.",
)
@click.option("--switch", "and_switch", is_flag=True, help="Let it serve when it is built.")
@click.option("--batch-size", type=COUNT_A_BATCH, help="Passages embedded and stored at once.")
@click.pass_context
def reindex(ctx: click.Context, spec: str | None, and_switch: bool, batch_size: int | None) -> None:
    """Embed what has no vector yet, by a new model or by the one that serves, while searches go
    on. Safe to stop and to repeat."""
    from portal.processes.modelling import show_progress, show_switch
    from portal.services.models import builds, switching
    from portal.services.models import catalog as model_service

    services = _services(ctx)
    serving = model_service.ensure_serving(services)
    model = model_service.register(services, spec) if spec else serving
    show_progress(model.name, builds.build(services, model.name, batch_size=batch_size))
    if and_switch and model.id != serving.id:
        show_switch(switching.switch(services, model.name))


@main.command()
@click.option("--http", "over_http", is_flag=True, help="Over HTTP, not standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8001, show_default=True, type=PORT)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    help="A name that requests may call it by, beside this machine's. May be repeated.",
)
@click.pass_context
def mcp(
    ctx: click.Context, over_http: bool, host: str, port: int, allowed_hosts: tuple[str, ...]
) -> None:
    """Let AI clients search and fetch (MCP), as the user whose token they bring: in PORTAL_TOKEN,
    or over HTTP with each request."""
    _require_extra("mcp")
    from portal.integrations.mcp import serving
    from portal.processes import supervisor

    if not over_http:
        serving.serve_stdio(_services(ctx), _token_of_environment())
        return
    services = _services(ctx)
    with supervisor.listen(host, port) as listener:
        click.echo(f"{supervisor.address_of(listener)}{serving.PATH}   (Ctrl-C stops it)")
        serving.serve_http(services, listener, allowed_hosts)


def _require_extra(name: str) -> None:
    """Raise ServerSetup if the extra of this name, and of its main package, is not installed."""
    if importlib.util.find_spec(name) is None:
        raise ServerSetup(reason=f"this needs the extra: ./run setup --{name}")


def _token_of_environment() -> str:
    token = os.environ.get("PORTAL_TOKEN", "").strip()
    if not token:
        raise ServerSetup(
            reason="PORTAL_TOKEN is not set. Make a token that may read on the account page, or by "
            "`portal token NAME`"
        )
    return token


@main.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--deep", is_flag=True, help="Check every index and table; rebuild damaged indexes.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, deep: bool) -> None:
    """Say what is there, what is missing, what that costs and what to do."""
    from portal.services.operations import setup

    if deep:
        is_well = True
        for found in setup.check_deeply(_services(ctx)):
            click.echo(found.text)
            is_well = is_well and found.is_well
        ctx.exit(0 if is_well else 1)
    report = setup.diagnose(_services(ctx))
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False, indent=2, default=str))
    else:
        for line in setup.report_lines(report):
            click.echo(line)
    ctx.exit(0 if report["fit"] else 1)
