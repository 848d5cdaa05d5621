"""Run and report `portal import-chroma`: progress, a table, and what was not imported."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from portal.errors import InvalidInput, ServerSetup
from portal.integrations.chroma.client import Client, open_directory
from portal.integrations.chroma_import.moving import Advance, Cases, Options, Tally, move
from portal.integrations.chroma_import.reading import (
    Source,
    Tenancy,
    list_collections,
    other_databases,
)
from portal.integrations.chroma_import.snapshot import snapshot
from portal.processes.cli.console import open_console, open_progress
from portal.services import Services
from portal.services.collections.records import Collections

_MAX_ID_SHOWN_LENGTH = 40
_STOPPED = 130  # The exit status that shells use for SIGINT.


def import_and_show(
    services: Services,
    directory: Path,
    options: Options,
    names: Sequence[str],
    tenancy: Tenancy,
    *,
    as_json: bool,
) -> int:
    """Import these collections, or all, and report. Return the exit status: 1 if anything is
    missing.

    Raises ServerSetup for a directory that cannot be read, InvalidInput for an unknown name.
    """
    settings = services.settings
    collections = Collections(services.database, settings.search)
    try:
        tallies = _import(collections, directory, settings.data_dir, options, names, tenancy)
    except KeyboardInterrupt:
        click.echo(
            "stopped. What was imported is kept; run the same command again to continue", err=True
        )
        return _STOPPED
    if as_json:
        _show_json(tallies)
    else:
        _show(tallies, options)
    if left := [tally.name for tally in tallies if not tally.is_whole]:
        came = "would come" if options.is_dry_run else "came"
        click.echo(f"portal: not all of {', '.join(left)} {came} over", err=True)
        return 1
    return 0


def _import(
    collections: Collections,
    directory: Path,
    data_dir: Path,
    options: Options,
    names: Sequence[str],
    tenancy: Tenancy,
) -> list[Tally]:
    console = Console(stderr=True)
    with ExitStack() as stack:
        with console.status(f"copying {directory}"):
            client, copy = stack.enter_context(_open_copy(directory, data_dir))
        sources = _choose(_sources(client, tenancy), names)
        tallies = []
        with open_progress(console) as progress:
            for source in sources:
                advance = _bar(progress, source)
                tallies.append(move(collections, source, options, advance))
        for left in other_databases(copy, tenancy):
            console.print(f"not looked at: {left}", markup=False)
    return tallies


@contextmanager
def _open_copy(directory: Path, data_dir: Path) -> Iterator[tuple[Client, Path]]:
    with snapshot(directory, data_dir) as copy:
        try:
            client = open_directory(copy, create=False)
        except ServerSetup as error:
            raise ServerSetup(str(error).replace(str(copy), str(directory))) from error
        try:
            yield client, copy
        finally:
            client.close()


def _sources(client: Client, tenancy: Tenancy) -> list[Source]:
    try:
        client.set_tenant(tenancy.tenant, tenancy.database)
        return list_collections(client)
    except Exception as error:
        # Chroma's errors have no common base class but Exception.
        raise ServerSetup(f"Chroma cannot list {tenancy}: {error}") from error


def _choose(sources: Sequence[Source], names: Sequence[str]) -> list[Source]:
    there = {source.name for source in sources}
    if unknown := [name for name in names if name not in there]:
        raise InvalidInput(
            "there is no collection %(names)s; there are %(known)s",
            names=", ".join(unknown),
            known=", ".join(sorted(there)) or "–",
        )
    return [source for source in sources if not names or source.name in names]


def _bar(progress: Progress, source: Source) -> Advance:
    bar = progress.add_task(source.name, total=None)

    def advance(done: int, total: int) -> None:
        progress.update(bar, advance=done, total=total)

    return advance


def _show(tallies: Sequence[Tally], options: Options) -> None:
    """Print a line for each collection, then remarks."""
    console = open_console()
    if not tallies:
        console.print("there are no collections in it")
        return
    console.print(_table(tallies, options))
    for line in _remarks(tallies, options):
        click.echo(line)


def _show_json(tallies: Sequence[Tally]) -> None:
    report = [dataclasses.asdict(tally) | {"is_whole": tally.is_whole} for tally in tallies]
    click.echo(json.dumps(report, ensure_ascii=False, indent=2))


def _table(tallies: Sequence[Tally], options: Options) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("collection", overflow="fold")
    table.add_column("distance")
    shown: dict[str, Callable[[Tally], int | None]] = {
        "in Chroma": lambda tally: tally.in_chroma,
        "to import" if options.is_dry_run else "imported": lambda tally: tally.imported,
        "there": lambda tally: tally.there,
        "changed": lambda tally: tally.changed,
        "skipped": lambda tally: tally.skipped_count,
        "in portal": lambda tally: tally.in_portal,
    }
    for heading in shown:
        table.add_column(heading, justify="right")
    for tally in tallies:
        counts = [shown[heading](tally) for heading in shown]
        numbers = ["–" if count is None else str(count) for count in counts]
        table.add_row(Text(tally.target), tally.distance or "–", *numbers)
    return table


def _remarks(tallies: Sequence[Tally], options: Options) -> Iterator[str]:
    for tally in tallies:
        yield from _ending(tally)
        if tally.warning is not None:
            yield f"{tally.name}: {tally.warning}"
        for reason, cases in tally.skipped.items():
            yield f"{tally.name}: skipped {_format_cases(cases)}: {reason}"
        for reason, cases in tally.notes.items():
            yield f"{tally.name}: {_format_cases(cases)}: {reason}"
        if tally.missing.count:
            yield f"{tally.name}: missing after the import: {_format_cases(tally.missing)}"
        if tally.changed:
            done = "stayed" if options.keeps else "replaced"
            done = f"would be {done}" if options.is_dry_run else done
            yield f"{tally.name}: {tally.changed} differed from Chroma's and {done}"
        if tally.only_here:
            yield f"{tally.name}: {tally.only_here} exist only in the portal"
    if options.is_dry_run:
        yield "a dry run: nothing was written"


def _ending(tally: Tally) -> Iterator[str]:
    """Yield why an import did not finish."""
    if tally.refused is not None:
        begun = tally.imported or tally.there or tally.changed
        yield f"{tally.name}: {'stopped' if begun else 'not imported'}: {tally.refused}"
    elif tally.seen != tally.in_chroma:
        yield f"{tally.name}: Chroma counts {tally.in_chroma} records and gave {tally.seen}"


def _format_cases(cases: Cases) -> str:
    """Format a count with a few ids, escaping unprintable characters."""
    shown = [repr(record_id[:_MAX_ID_SHOWN_LENGTH]) for record_id in cases.ids]
    more = ", …" if cases.count > len(shown) else ""
    return f"{cases.count} ({', '.join(shown)}{more})"
