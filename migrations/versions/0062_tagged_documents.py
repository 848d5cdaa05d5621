"""Index documents that have tags, which the filters of lists offer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0060"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_documents_tagged",
        "documents",
        ["collection_id"],
        postgresql_where=sa.text("tags <> '{}'"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_documents_tagged", "documents")
