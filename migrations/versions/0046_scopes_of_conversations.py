"""Let a conversation ask about some documents, folders and tags only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0046"
down_revision = "0045"

_BUMP = """
CREATE FUNCTION bump_version_of_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.selection_version = CAST(CAST(pg_current_xact_id() AS text) AS bigint);
    RETURN NEW;
END $$;
CREATE TRIGGER conversations_bump_version_of_scope BEFORE UPDATE OF scope ON conversations
    FOR EACH ROW EXECUTE FUNCTION bump_version_of_scope();
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("conversations", sa.Column("scope", postgresql.JSONB()))
    op.execute(_BUMP)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute("DROP TRIGGER conversations_bump_version_of_scope ON conversations")
    op.execute("DROP FUNCTION bump_version_of_scope")
    op.drop_column("conversations", "scope")
