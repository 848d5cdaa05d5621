"""Index what decides who sees a document in the order of its list, so that lists are counted by the
index alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_documents_listed",
        "documents",
        ["collection_id", "created_at", "id"],
        postgresql_include=["visibility", "gate_id", "owner_id"],
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.drop_index("ix_documents_collection_id_created_at", "documents")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_documents_collection_id_created_at",
        "documents",
        ["collection_id", "created_at", "id"],
    )
    op.drop_index("ix_documents_listed", "documents")
