"""Audit events of backups and restores, in the portal that they are of."""

from __future__ import annotations

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
    database = Database(url)
    try:
        with database.begin() as session:
            if audit_log.exists(session):
                audit.record(
                    session,
                    event,
                    subject=Subject(SubjectKind.BACKUP, title=path.name),
                    details={"taken_at": manifest.taken_at, "portal": manifest.portal_version},
                )
    except PortalError as error:
        log.warning("audit_event_lost", event_name=event.value, code=error.code)
    finally:
        database.dispose()
