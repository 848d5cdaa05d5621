"""Passages are found by their words, so that the same words are not embedded twice."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_document_chunks_content", "document_chunks", ["content"], postgresql_using="hash"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_document_chunks_content", table_name="document_chunks")
