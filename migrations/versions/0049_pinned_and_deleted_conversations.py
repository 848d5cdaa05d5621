"""Pin conversations, and keep deleted ones for a while, so that it can be undone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for name in ("pinned_at", "deleted_at"):
        op.add_column("conversations", sa.Column(name, sa.DateTime(timezone=True)))
    op.create_index(
        "ix_conversations_deleted_at",
        "conversations",
        ["deleted_at"],
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_conversations_untitled",
        "conversations",
        ["updated_at"],
        postgresql_where=sa.text("title = ''"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    # The older version would show what was deleted.
    op.execute("DELETE FROM conversations WHERE deleted_at IS NOT NULL")
    for name in ("ix_conversations_untitled", "ix_conversations_deleted_at"):
        op.drop_index(name, table_name="conversations")
    for name in ("deleted_at", "pinned_at"):
        op.drop_column("conversations", name)
