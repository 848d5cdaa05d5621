"""Jobs take turns between people, and say why they ended and when they are tried again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COUNTS = ("turn", "failed_attempts", "deaths")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for name in _COUNTS:
        op.add_column(
            "jobs", sa.Column(name, sa.Integer(), server_default=sa.text("0"), nullable=False)
        )
    op.add_column("jobs", sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_jobs_created_at", "jobs", ["created_at", "id"])
    op.create_index(
        "ix_jobs_turn",
        "jobs",
        ["turn"],
        postgresql_where=sa.text("status IN ('queued', 'processing')"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_jobs_turn", table_name="jobs")
    op.drop_index("ix_jobs_created_at", table_name="jobs")
    op.drop_column("jobs", "retry_at")
    for name in _COUNTS:
        op.drop_column("jobs", name)
    # Nobody serves the second queue any more.
    op.execute(
        "UPDATE procrastinate_jobs SET queue_name = 'ingest' "
        "WHERE queue_name = 'ingest_slow' AND status IN ('todo', 'doing')"
    )
    # Builds of models come after all documents again where those have the priority 0.
    op.execute(
        "UPDATE procrastinate_jobs SET priority = greatest(priority, -1) WHERE status = 'todo'"
    )
