"""SQL of the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, delete, func, insert, or_, select, text
from sqlalchemy.orm import Session

from portal.domain.paging import ListPage
from portal.domain.people.audit import (
    AuditEntry,
    AuditEvent,
    AuditFilter,
    Origin,
    Subject,
    SubjectKind,
)
from portal.store.cursors import latest_first
from portal.store.models import AuditRow

_COLUMNS = [getattr(AuditRow, field.name) for field in fields(AuditEntry)]


def add_entries(
    session: Session,
    event: AuditEvent,
    entries: Sequence[tuple[Subject | None, Mapping[str, Any]]],
    *,
    origin: Origin,
    **who: Any,
) -> None:
    """Write an event for each subject, with its details; `who` are the columns about the actor."""
    common = {
        **who,
        "event": event.value,
        "source": origin.source.value,
        "address": origin.address,
        "user_agent": origin.user_agent,
        "request_id": origin.request_id,
    }
    session.execute(
        insert(AuditRow),
        [
            {
                **common,
                "subject_kind": subject.kind.value if subject else None,
                "subject_id": str(subject.id) if subject and subject.id is not None else None,
                "subject_title": subject.title if subject else None,
                "details": dict(details),
            }
            for subject, details in entries
        ],
    )


def exists(session: Session) -> bool:
    """Return whether this schema has an audit log; older ones do not."""
    return session.scalar(text("SELECT to_regclass('audit_log')")) is not None


def list_entries(
    session: Session,
    chosen: AuditFilter,
    *,
    name_digests: Sequence[str],
    cursor: str | None,
    limit: int,
) -> ListPage[AuditEntry]:
    """Return a page of entries, latest first. Raises MalformedRequest on a bad cursor."""
    return latest_first(
        session,
        _matching(chosen, name_digests),
        AuditRow.created_at,
        AuditRow.id,
        cursor=cursor,
        limit=limit,
        to_item=lambda row: AuditEntry(*row),
        place=lambda entry: (entry.created_at, entry.id),
    )


def list_recent_subjects(
    session: Session,
    event: AuditEvent,
    actor_id: UUID,
    kind: SubjectKind,
    ids: Sequence[UUID],
    *,
    within_s: int,
) -> set[str]:
    """Return the ids of subjects that the actor has such an event about in the last `within_s`."""
    recent = select(AuditRow.subject_id).where(
        AuditRow.subject_kind == kind.value,
        AuditRow.subject_id.in_([str(subject_id) for subject_id in ids]),
        AuditRow.event == event.value,
        AuditRow.actor_id == actor_id,
        AuditRow.created_at > func.now() - timedelta(seconds=within_s),
    )
    return {actor for actor in session.scalars(recent) if actor}


def list_of_subject(
    session: Session,
    events: Sequence[AuditEvent],
    kind: SubjectKind,
    subject_id: UUID,
    *,
    limit: int,
) -> list[AuditEntry]:
    """Return events of these kinds about one subject, latest first."""
    rows = session.execute(
        select(*_COLUMNS)
        .where(
            AuditRow.subject_kind == kind.value,
            AuditRow.subject_id == str(subject_id),
            AuditRow.event.in_([event.value for event in events]),
        )
        .order_by(AuditRow.created_at.desc(), AuditRow.id)
        .limit(limit)
    )
    return [AuditEntry(*row) for row in rows]


def delete_before(session: Session, moment: datetime, *, limit: int) -> int:
    """Delete the oldest entries before a moment, at most `limit`; return how many."""
    oldest = (
        select(AuditRow.id)
        .where(AuditRow.created_at < moment)
        .order_by(AuditRow.created_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    done = session.execute(delete(AuditRow).where(AuditRow.id.in_(oldest)).returning(AuditRow.id))
    return len(done.all())


def _matching(chosen: AuditFilter, name_digests: Sequence[str]) -> Select[Any]:
    conditions: list[ColumnElement[bool]] = []
    if chosen.event is not None:
        conditions.append(AuditRow.event == chosen.event.value)
    if chosen.user is not None:
        name = func.lower(chosen.user)
        conditions.append(
            or_(
                func.lower(AuditRow.actor_name) == name,
                AuditRow.name_digest.in_(name_digests),
                and_(
                    AuditRow.subject_kind == SubjectKind.USER.value,
                    func.lower(AuditRow.subject_title) == name,
                ),
            )
        )
    if chosen.text is not None:
        columns = (
            *(AuditRow.actor_name, AuditRow.subject_title, AuditRow.subject_id, AuditRow.address),
            *(AuditRow.user_agent, AuditRow.request_id),
        )
        conditions.append(
            or_(*(column.icontains(chosen.text, autoescape=True) for column in columns))
        )
    if chosen.since is not None:
        conditions.append(AuditRow.created_at >= chosen.since)
    if chosen.until is not None:
        conditions.append(AuditRow.created_at < chosen.until)
    return select(*_COLUMNS).where(*conditions)
