"""Cover the switches by their primary keys, which are read for each document of a search."""

from __future__ import annotations

from alembic import op

revision = "0040"
down_revision = "0025"

_OWNERS = {
    "user_document_defaults": "user_id",
    "conversation_document_overrides": "conversation_id",
}


def upgrade() -> None:
    _replace_keys("INCLUDE (enabled)")


def downgrade() -> None:
    _replace_keys("")


def _replace_keys(covering: str) -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for table, owner in _OWNERS.items():
        op.execute(
            f"""
            ALTER TABLE {table} DROP CONSTRAINT pk_{table},
                ADD CONSTRAINT pk_{table} PRIMARY KEY ({owner}, document_id) {covering}
            """
        )
