"""`portal import` as a person sees it: a progress bar, a line for each failure, a summary."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from portal.domain.documents import DocumentStatus, Visibility
from portal.domain.people import Person
from portal.services import Services, accounts, importing, library
from portal.worker import has_live_workers, work_until_empty

_POLL_S = 0.5


def import_and_wait(
    services: Services,
    paths: Sequence[Path],
    *,
    owner: str,
    domain: str | None,
    visibility: Visibility,
    wait: bool,
) -> int:
    """Import files and folders and say what came of them; gives how many failed."""
    console = Console(stderr=True)
    person = accounts.find_person(services, owner)
    files = importing.find_files(paths)
    document_ids: list[UUID] = []
    failed = duplicates = 0
    with _progress(console) as progress:
        bar = progress.add_task("storing", total=len(files))
        for result in importing.import_files(
            services, person, files, domain=domain, visibility=visibility
        ):
            progress.advance(bar)
            duplicates += result.is_duplicate
            if result.error is not None:
                failed += 1
                progress.console.print(f"{result.path}: {result.error}", markup=False)
            elif result.document_id is not None:
                document_ids.append(result.document_id)
    if wait:
        failed += _wait(services, person, document_ids, console)
    stored = len(document_ids) - duplicates
    summary = f"{stored} stored, {duplicates} already there, {failed} failed"
    console.print(summary, highlight=False)
    return failed


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console)


def _wait(
    services: Services, person: Person, document_ids: Sequence[UUID], console: Console
) -> int:
    """Stay until each is ready or failed; with no worker about, do the work here."""
    own_worker = None if has_live_workers(services) else _start_worker(services)
    left = set(document_ids)
    with _progress(console) as progress:
        bar = progress.add_task("reading", total=len(document_ids))
        while left:
            left = importing.unfinished(services, person, left)
            progress.update(bar, completed=len(document_ids) - len(left))
            if left:
                time.sleep(_POLL_S)
            if left and own_worker is not None and not own_worker.is_alive():
                # It ends when nothing is due; what waits for another attempt is due later.
                own_worker = _start_worker(services)
    if own_worker is not None:
        own_worker.join()
    return _report_failures(services, person, document_ids, console)


def _start_worker(services: Services) -> threading.Thread:
    worker = threading.Thread(target=work_until_empty, args=(services,), daemon=True)
    worker.start()
    return worker


def _report_failures(
    services: Services, person: Person, document_ids: Sequence[UUID], console: Console
) -> int:
    failed = 0
    for document_id in document_ids:
        summary = library.get_summary(services, person, document_id)
        if summary.status is DocumentStatus.FAILED and summary.failure is not None:
            failed += 1
            reason = importing.failure_words(summary.failure)
            console.print(f"{summary.file_name}: {reason}", markup=False)
    return failed
