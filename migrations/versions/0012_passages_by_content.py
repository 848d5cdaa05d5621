"""Passages are found by their words, so that the same words are not embedded twice.

All passages there are have to be hashed, so the index is built beside those who write.
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # Nobody waits behind this: it may wait for whoever reads for long.
        op.execute("SET lock_timeout = 0")
        # What a build leaves that was cut off: no search uses it.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_document_chunks_content")
        op.create_index(
            "ix_document_chunks_content",
            "document_chunks",
            ["content"],
            postgresql_using="hash",
            postgresql_concurrently=True,
        )
        op.execute("SET lock_timeout = '10s'")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_document_chunks_content", table_name="document_chunks")
