"""The audit of private documents that administrators read, which owners and keepers can see.

Private here are other users' private documents, and documents in folders limited to members of
which the administrator is not one.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from portal.domain.documents import DocumentSummary
from portal.domain.people import User
from portal.domain.people.audit import AuditEntry
from portal.errors import NotFound
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.store.documents import rows as document_store
from portal.store.operations import audit_log

_EVENTS = (AuditEvent.PRIVATE_DOCUMENT_OPENED, AuditEvent.PRIVATE_DOCUMENT_FOUND)
_ONCE_IN_S = 3600
"""In this time, an event is recorded once for each document and administrator: a page reads a
document many times, and a search runs with each letter that is typed."""
_MAX_SHOWN = 20


def record(services: Services, user: User, document_ids: Collection[UUID], *, found: bool) -> None:
    """Record that an administrator opened these documents, or found them by a search, for those
    that this user sees only as an administrator."""
    if not (user.is_admin and document_ids):
        return
    event = AuditEvent.PRIVATE_DOCUMENT_FOUND if found else AuditEvent.PRIVATE_DOCUMENT_OPENED
    # A replica can answer whether there is anything to write.
    with services.database.read() as session:
        closed = document_store.list_closed_to(session, user, document_ids)
    if not closed:
        return
    # A read that cannot be recorded must not be shown either: without the primary this fails.
    with services.database.on_primary(), services.database.begin() as session:
        known = audit_log.list_recent_subjects(
            session, event, user.id, SubjectKind.DOCUMENT, list(closed), within_s=_ONCE_IN_S
        )
        entries: list[tuple[Subject, dict[str, str]]] = [
            (Subject(SubjectKind.DOCUMENT, document_id, title), {})
            for document_id, title in closed.items()
            if str(document_id) not in known
        ]
        audit.record_each(session, event, user, entries)


def list_reads(services: Services, user: User, document_id: UUID) -> list[AuditEntry]:
    """Return when administrators opened or found a document, latest first, for its owner and the
    keepers of its folder. Raises NotFound for all others; administrators have the audit log."""
    with services.database.begin() as session:
        summary = document_store.find_summary(session, user, document_id)
        if summary is None or not may_see_reads(user, summary):
            raise NotFound
        return audit_log.list_of_subject(
            session, _EVENTS, SubjectKind.DOCUMENT, document_id, limit=_MAX_SHOWN
        )


def may_see_reads(user: User, summary: DocumentSummary) -> bool:
    """Return whether a user may see when administrators read a document."""
    return summary.owner_id == user.id or (summary.can_edit and not user.is_admin)
