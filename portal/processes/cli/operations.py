"""Commands for operators: ``migrate``, ``audit`` and ``doctor``."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import click

from portal.processes.cli.base import main, open_services, show_administrator


@main.command()
@click.option(
    "--to", "revision", default="head", help="The revision to migrate to; `base` drops everything."
)
@click.option("--check", is_flag=True, help="Only check that models and migrations agree.")
@click.pass_context
def migrate(ctx: click.Context, revision: str, check: bool) -> None:
    """Migrate the database to the newest schema; create the administrator on the first run."""
    from portal.services.operations import setup
    from portal.services.people import accounts

    services = open_services(ctx)
    if check:
        differences = setup.schema_differences(services)
        for difference in differences:
            click.echo(str(difference), err=True)
        ctx.exit(1 if differences else 0)
    for line in setup.prepare_database(services, revision=revision):
        click.echo(line)
    if revision == "head":
        show_administrator(accounts.ensure_first_administrator(services))


@main.command()
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Entries from this day on (UTC).")
@click.option("--event", help="Only this event, such as sign_in_failed.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, with every column.")
@click.pass_context
def audit(ctx: click.Context, since: datetime | None, event: str | None, as_csv: bool) -> None:
    """Print the audit log, newest first: who did what, when and from where."""
    from portal.domain.people.audit import AuditEvent, AuditFilter
    from portal.services.operations.reports import audit_log

    if event is not None and event not in set(AuditEvent):
        raise click.BadParameter(f"one of {', '.join(AuditEvent)}", param_hint="--event")
    chosen = AuditFilter(
        event=AuditEvent(event) if event else None,
        since=since.replace(tzinfo=UTC) if since else None,
    )
    entries = audit_log.read_all(open_services(ctx), chosen)
    for line in audit_log.csv_lines(entries) if as_csv else audit_log.plain_lines(entries):
        click.echo(line, nl=False)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--deep", is_flag=True, help="Check every index and table; rebuild damaged indexes.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write versions, settings, state and counts for support to a new zip file.",
)
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, deep: bool, bundle: Path | None) -> None:
    """Check the installation: what works, what is missing, and how to fix it."""
    from portal.services.operations import setup

    if bundle is not None:
        _write_bundle(ctx, bundle)
        return
    if deep:
        is_well = True
        for found in setup.check_deeply(open_services(ctx)):
            click.echo(found.text)
            is_well = is_well and found.is_well
        ctx.exit(0 if is_well else 1)
    report = setup.diagnose(open_services(ctx))
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False, indent=2, default=str))
    else:
        for line in setup.report_lines(report):
            click.echo(line)
    ctx.exit(0 if report["fit"] else 1)


def _write_bundle(ctx: click.Context, path: Path) -> None:
    import zipfile

    from portal.services.operations.reports import support_bundle

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in support_bundle.make_bundle(open_services(ctx)):
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    click.echo(f"{path}: read it before you send it; it has no passwords, names or texts")
