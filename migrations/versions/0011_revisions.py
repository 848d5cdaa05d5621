"""Each file knows what it was called, what it is and who sent it, and each revision how much of its
text is new: a document can have several of both.

Files that older code stores say none of it; they are then called as their document is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("stored_files", sa.Column("file_name", sa.Text(), nullable=True))
    op.add_column("stored_files", sa.Column("media_type", sa.Text(), nullable=True))
    op.add_column("stored_files", sa.Column("uploaded_by", sa.Uuid(), nullable=True))
    op.create_foreign_key(
        op.f("fk_stored_files_uploaded_by"),
        "stored_files",
        "users",
        ["uploaded_by"],
        ["id"],
        ondelete="SET NULL",
    )
    for name in ("characters_added", "characters_removed"):
        op.add_column("document_revisions", sa.Column(name, sa.Integer(), nullable=True))
    # Until now all files of a document were one and the same, read again.
    op.execute(
        """
        UPDATE stored_files f
        SET file_name = d.file_name, media_type = d.media_type, uploaded_by = d.owner_id
        FROM jobs j JOIN documents d ON d.id = j.document_id
        WHERE j.file_id = f.id
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for name in ("characters_removed", "characters_added"):
        op.drop_column("document_revisions", name)
    op.drop_constraint(op.f("fk_stored_files_uploaded_by"), "stored_files", type_="foreignkey")
    for name in ("uploaded_by", "media_type", "file_name"):
        op.drop_column("stored_files", name)
