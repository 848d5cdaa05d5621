"""Index documents by type, with what decides who sees them, so that the list offers the types that a
user has without a scan."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0069"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_documents_listed_types",
        "documents",
        ["collection_id", "media_type"],
        postgresql_include=["visibility", "gate_id", "owner_id"],
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_documents_listed_types", "documents")
