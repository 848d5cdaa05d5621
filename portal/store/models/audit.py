"""The audit log: rows that are written once and read by administrators."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, JsonObject, UuidKey


class AuditRow(Base):
    """One event. It has no foreign keys, because it outlives the rows it names."""

    __tablename__ = "audit_log"

    id: Mapped[UuidKey]
    # The wall clock, not the start of the transaction: events of one transaction stay in order.
    created_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    event: Mapped[str]
    source: Mapped[str]
    actor_id: Mapped[UUID | None]
    actor_name: Mapped[str | None]
    # For a failed sign-in: what was typed as a name may be a password.
    name_digest: Mapped[str | None]
    address: Mapped[str | None]
    user_agent: Mapped[str | None]
    request_id: Mapped[str | None]
    subject_kind: Mapped[str | None]
    subject_id: Mapped[str | None]
    subject_title: Mapped[str | None]
    details: Mapped[JsonObject]

    __table_args__ = (
        CheckConstraint("source IN ('web', 'command_line', 'worker')", name="source_known"),
        Index("ix_audit_log_created_at_id", "created_at", "id"),
        Index("ix_audit_log_event_created_at_id", "event", "created_at", "id"),
        Index("ix_audit_log_actor_name_lower", text("lower(actor_name)"), "created_at", "id"),
        Index("ix_audit_log_name_digest", "name_digest", "created_at", "id"),
        Index("ix_audit_log_subject_kind_subject_id", "subject_kind", "subject_id"),
    )
