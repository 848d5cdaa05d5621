"""Keep what the last runs of a source changed: a run that finds nothing new hid it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0067"
down_revision = "0066"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "source_runs",
        sa.Column(
            "folder_id",
            sa.Uuid(),
            sa.ForeignKey("folder_sources.folder_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("ran_at", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("outcome", postgresql.JSONB(), nullable=False),
    )
    op.execute(
        """
        INSERT INTO source_runs (folder_id, ran_at, outcome)
        SELECT folder_id, last_run_at, last_run FROM folder_sources
        WHERE last_run_at IS NOT NULL AND (
            last_run @> '{"added": 0, "changed": 0, "removed": 0}'
        ) IS FALSE
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("source_runs")
