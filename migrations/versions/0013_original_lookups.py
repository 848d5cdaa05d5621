"""Originals are found by their bytes, and jobs and revisions by what they were read from."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"

_INDEXES = (
    ("stored_files", "sha256"),
    ("jobs", "file_id"),
    ("jobs", "revision_id"),
    ("document_revisions", "file_id"),
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for table, column in _INDEXES:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for table, column in reversed(_INDEXES):
        op.drop_index(op.f(f"ix_{table}_{column}"), table_name=table)
