"""Store no scope as NULL: a JSON null in its place counted as a scope, in which folders are off."""

from __future__ import annotations

from alembic import op

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for table in ("conversations", "messages"):
        op.execute(f"UPDATE {table} SET scope = NULL WHERE scope = 'null'")


def downgrade() -> None:
    """Keep the rows: both stand for no scope."""
