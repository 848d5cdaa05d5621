"""Keep requests of sources to one host apart, of all workers together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0056"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "source_hosts",
        sa.Column("host", sa.Text(), primary_key=True),
        sa.Column("free_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("source_hosts")
