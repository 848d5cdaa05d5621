"""The audit log: read it by page, export it as CSV, delete old entries."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from portal.domain.paging import ListPage
from portal.domain.people import User, require_admin
from portal.domain.people.audit import AuditEntry, AuditFilter
from portal.observability.redaction import escape_controls
from portal.services import Services, audit
from portal.store.operations import audit_log as audit_store

EVERYTHING = AuditFilter()
COLUMNS = (
    *("time", "event", "source", "actor_id", "actor", "address", "user_agent", "request_id"),
    *("name_digest", "subject_kind", "subject_id", "subject", "details"),
)

_ENTRIES_PER_PAGE = 500
_DELETED_AT_ONCE = 5000
# Spreadsheets read cells that begin with one of these as formulas.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def list_entries(
    services: Services,
    user: User,
    chosen: AuditFilter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[AuditEntry]:
    """Return a page of the audit log, latest first. Administrators only. Raises MalformedRequest
    on a bad cursor."""
    require_admin(user)
    return _page(services, chosen, cursor, limit)


def export_csv(services: Services, user: User, chosen: AuditFilter = EVERYTHING) -> Iterator[str]:
    """Return the lines of a CSV file of all entries that match. Administrators only."""
    require_admin(user)
    return csv_lines(read_all(services, chosen))


def read_all(services: Services, chosen: AuditFilter = EVERYTHING) -> Iterator[AuditEntry]:
    """Yield all entries that match, latest first. Reads page by page, so that a slow reader holds
    no connection. The command line calls this without a user."""
    cursor: str | None = None
    while True:
        page = _page(services, chosen, cursor, _ENTRIES_PER_PAGE)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def csv_lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """Yield a header and a line for each entry."""
    yield _line(COLUMNS)
    for entry in entries:
        details = json.dumps(entry.details, ensure_ascii=False) if entry.details else ""
        values = (
            *(entry.created_at.astimezone(UTC).isoformat(), entry.event, entry.source),
            *(entry.actor_id, entry.actor_name, entry.address, entry.user_agent),
            *(entry.request_id, entry.name_digest, entry.subject_kind, entry.subject_id),
            *(entry.subject_title, details),
        )
        yield _line(tuple("" if value is None else str(value) for value in values))


def plain_lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    """Yield one line for each entry: time, event, actor, subject, address."""
    for entry in entries:
        time = entry.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = [time, entry.event, f"by {entry.actor_name or entry.source}"]
        if entry.subject_kind:
            words.append(f"{entry.subject_kind} {entry.subject_title or entry.subject_id or ''}")
        if entry.address:
            words.append(f"from {entry.address}")
        yield escape_controls("  ".join(words)) + "\n"


def _line(values: tuple[str, ...]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(_plain(value) for value in values)
    return written.getvalue()


def _plain(value: str) -> str:
    """Return a cell that spreadsheets show as text: one line, no formula."""
    shown = "".join(
        " " if unicodedata.category(character) == "Cc" else character for character in value
    )
    return f"'{shown}" if value.startswith(_FORMULA_STARTS) else shown


def delete_expired(services: Services, *, should_stop: Callable[[], bool]) -> None:
    """Delete entries that are older than the settings allow."""
    days = services.settings.audit.retention_days
    if not days:
        return
    before = datetime.now(UTC) - timedelta(days=days)
    while not should_stop():
        with services.database.begin() as session:
            deleted = audit_store.delete_before(session, before, limit=_DELETED_AT_ONCE)
        if deleted < _DELETED_AT_ONCE:
            return


def _page(
    services: Services, chosen: AuditFilter, cursor: str | None, limit: int
) -> ListPage[AuditEntry]:
    keys = services.secret_keys if chosen.user else []
    digests = [audit.digest_name(key, chosen.user or "") for key in keys]
    with services.database.read() as session:
        return audit_store.list_entries(
            session, chosen, name_digests=digests, cursor=cursor, limit=limit
        )
