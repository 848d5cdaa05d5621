"""The audit log: rows that are written once and read by administrators."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, Text, func, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, JsonObject, UuidKey


class AuditRow(Base):
    """One event. It refers to nothing by foreign key, because it outlives what it names."""

    __tablename__ = "audit_log"

    id: Mapped[UuidKey]
    # The wall clock, not the start of the transaction: events of one transaction stay in order.
    created_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    event: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    actor_id: Mapped[UUID | None]
    actor_name: Mapped[str | None] = mapped_column(Text)
    # Of a failed sign-in: what was typed as a name may be a password.
    name_digest: Mapped[str | None] = mapped_column(Text)
    address: Mapped[str | None] = mapped_column(Text)
    user_agent: Mapped[str | None] = mapped_column(Text)
    request_id: Mapped[str | None] = mapped_column(Text)
    subject_kind: Mapped[str | None] = mapped_column(Text)
    subject_id: Mapped[str | None] = mapped_column(Text)
    subject_title: Mapped[str | None] = mapped_column(Text)
    details: Mapped[JsonObject]

    __table_args__ = (
        CheckConstraint("source IN ('web', 'command_line', 'worker')", name="source_known"),
        Index("ix_audit_log_created_at_id", "created_at", "id"),
        Index("ix_audit_log_event_created_at_id", "event", "created_at", "id"),
        Index("ix_audit_log_actor_name_lower", func.lower(actor_name), "created_at", "id"),
        Index("ix_audit_log_name_digest", "name_digest", "created_at", "id"),
        Index("ix_audit_log_subject_kind_subject_id", "subject_kind", "subject_id"),
    )
