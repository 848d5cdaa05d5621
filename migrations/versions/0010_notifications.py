"""Notifications know the end of a job that they tell of, and whether somebody was told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("notifications", sa.Column("job_id", sa.Uuid(), nullable=True))
    op.add_column("notifications", sa.Column("attempt", sa.Integer(), nullable=True))
    op.add_column(
        "notifications", sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True)
    )
    op.create_foreign_key(
        "fk_notifications_job_id", "notifications", "jobs", ["job_id"], ["id"], ondelete="CASCADE"
    )
    op.create_unique_constraint(
        "uq_notifications_job_id_attempt_user_id",
        "notifications",
        ["job_id", "attempt", "user_id"],
    )
    op.create_index("ix_notifications_document_id", "notifications", ["document_id"])
    op.create_index(
        "ix_notifications_undelivered",
        "notifications",
        ["user_id", "created_at"],
        postgresql_where=sa.text("delivered_at IS NULL"),
    )
    op.create_index(
        "ix_notifications_unread",
        "notifications",
        ["user_id"],
        postgresql_where=sa.text("read_at IS NULL"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_notifications_unread", table_name="notifications")
    op.drop_index("ix_notifications_undelivered", table_name="notifications")
    op.drop_index("ix_notifications_document_id", table_name="notifications")
    op.drop_constraint("uq_notifications_job_id_attempt_user_id", "notifications")
    op.drop_constraint("fk_notifications_job_id", "notifications")
    for name in ("delivered_at", "attempt", "job_id"):
        op.drop_column("notifications", name)
