"""Audit events of backups and restores, in the portal that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import structlog

from portal.errors import PortalError
from portal.processes.backups.manifest import Manifest
from portal.services import audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.store.operations import audit_log
from portal.store.session import Database

log = structlog.get_logger(__name__)


def record(url: str, event: AuditEvent, path: Path, manifest: Manifest) -> None:
    """Add the event, if the schema has an audit log. A failure is logged and does not discard the
    finished backup."""
    details = {"taken_at": manifest.taken_at, "portal": manifest.portal_version}
    try:
        _add(url, event, path, details)
    except PortalError as error:
        log.warning("audit_event_lost", event_name=event.value, code=error.code)


def record_rehearsal(url: str, path: Path, *, taken_at: str | None, has_failed: bool) -> None:
    """Add the outcome of a rehearsal, which health shows. Raises DatabaseUnavailable."""
    details = {"result": "failed" if has_failed else "ok"}
    details |= {"taken_at": taken_at} if taken_at else {}
    _add(url, AuditEvent.BACKUP_REHEARSED, path, details)


def _add(url: str, event: AuditEvent, path: Path, details: Mapping[str, str]) -> None:
    database = Database(url)
    try:
        with database.begin() as session:
            if audit_log.exists(session):
                subject = Subject(SubjectKind.BACKUP, title=path.name)
                audit.record(session, event, None, subject, **details)
    finally:
        database.dispose()
