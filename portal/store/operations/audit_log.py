"""SQL of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.orm import Session

from portal.domain.audit import AuditEvent, Origin, Subject
from portal.store.models import AuditRow


def add_entry(
    session: Session,
    event: AuditEvent,
    *,
    origin: Origin,
    actor_id: UUID | None,
    actor_name: str | None,
    name_digest: str | None,
    subject: Subject | None,
    details: Mapping[str, Any],
) -> None:
    """Write one event in the caller's transaction."""
    has_id = subject is not None and subject.id is not None
    session.execute(
        insert(AuditRow).values(
            event=event.value,
            source=origin.source.value,
            actor_id=actor_id,
            actor_name=actor_name,
            name_digest=name_digest,
            address=origin.address,
            user_agent=origin.user_agent,
            request_id=origin.request_id,
            subject_kind=subject.kind.value if subject else None,
            subject_id=str(subject.id) if subject and has_id else None,
            subject_title=subject.title if subject else None,
            details=dict(details),
        )
    )
