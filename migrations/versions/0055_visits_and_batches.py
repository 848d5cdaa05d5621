"""Remember when users were here before, and announce files that were uploaded together as one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0050"

_VISITS = ("visited_at", "previous_visit_at")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for name in _VISITS:
        op.add_column("users", sa.Column(name, sa.DateTime(timezone=True)))
    op.add_column(
        "notifications",
        sa.Column("batch_id", sa.Uuid(), nullable=False, server_default=sa.func.gen_random_uuid()),
    )
    op.create_index("ix_notifications_batch_id", "notifications", ["batch_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_notifications_batch_id", table_name="notifications")
    op.drop_column("notifications", "batch_id")
    for name in _VISITS:
        op.drop_column("users", name)
