"""Add the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Uuid()),
        sa.Column("actor_name", sa.Text()),
        sa.Column("name_digest", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("user_agent", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("subject_kind", sa.Text()),
        sa.Column("subject_id", sa.Text()),
        sa.Column("subject_title", sa.Text()),
        sa.Column(
            "details",
            postgresql.JSONB(),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "source IN ('web', 'command_line', 'worker')",
            name=op.f("ck_audit_log_source_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index("ix_audit_log_created_at_id", "audit_log", ["created_at", "id"])
    op.create_index("ix_audit_log_event_created_at_id", "audit_log", ["event", "created_at", "id"])
    op.create_index(
        "ix_audit_log_actor_name_lower",
        "audit_log",
        [sa.text("lower(actor_name)"), "created_at", "id"],
    )
    op.create_index("ix_audit_log_name_digest", "audit_log", ["name_digest", "created_at", "id"])
    op.create_index(
        "ix_audit_log_subject_kind_subject_id", "audit_log", ["subject_kind", "subject_id"]
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("audit_log")
