"""Passages that programs add have no place in their document's text.

Going back deletes them: older code takes every passage for a range of characters of a revision.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"

_COLUMNS = ("char_start", "char_end")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for column in _COLUMNS:
        op.alter_column("document_chunks", column, nullable=True)
    op.create_check_constraint(
        op.f("ck_document_chunks_char_range_whole"),
        "document_chunks",
        "num_nulls(char_start, char_end) <> 1",
    )


def downgrade() -> None:
    op.drop_constraint(
        op.f("ck_document_chunks_char_range_whole"), "document_chunks", type_="check"
    )
    op.execute("DELETE FROM document_chunks WHERE char_start IS NULL")
    # Counted anew by the trigger of 0002.
    op.execute("UPDATE documents SET current_job_id = current_job_id")
    for column in _COLUMNS:
        op.alter_column("document_chunks", column, nullable=False)
