"""Documents that bulk changes skipped, for the page that lists them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from portal.domain.documents import DocumentFilter
from portal.domain.documents.bulk import BulkAction, BulkReport, BulkResult, SkippedDocument
from portal.domain.people import User
from portal.store.documents.document_lists import matching
from portal.store.models import BulkReportRow, DocumentRow


def add_report(session: Session, user: User, action: BulkAction, done: BulkResult) -> UUID:
    """Store a result without titles, which are read with the report, as the user then sees them."""
    outcome = {
        "changed_count": done.changed_count,
        "skipped": [[str(one.id), one.reason] for one in done.skipped],
        "skipped_count": done.skipped_count,
        "missing_count": done.missing_count,
    }
    row = BulkReportRow(
        user_id=user.id, change_id=done.change_id, action=action.value, outcome=outcome
    )
    session.add(row)
    session.flush()
    return row.id


def find_report(session: Session, user: User, report_id: UUID) -> BulkReport | None:
    """Return a report of the user's own, with the documents that the user still sees."""
    row = session.scalar(select(BulkReportRow).filter_by(id=report_id, user_id=user.id))
    if row is None:
        return None
    action, outcome = BulkAction(row.action), dict(row.outcome)
    reasons = {UUID(document_id): reason for document_id, reason in outcome.pop("skipped")}
    statement = matching(
        user, DocumentFilter(), ids=list(reasons), deleted=action is BulkAction.RESTORE
    ).with_only_columns(DocumentRow.id, DocumentRow.title)
    titles = {found.id: found.title for found in session.execute(statement)}
    skipped = tuple(
        SkippedDocument(document_id, titles[document_id], reason)
        for document_id, reason in reasons.items()
        if document_id in titles
    )
    return BulkReport(action, BulkResult(row.change_id, skipped=skipped, **outcome))


def delete_expired(session: Session, *, life: timedelta) -> None:
    """Delete reports that are older than `life`."""
    session.execute(delete(BulkReportRow).where(BulkReportRow.created_at < func.now() - life))
