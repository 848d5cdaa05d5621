"""What the text of a revision is made of, and what its chunks carry of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0022"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("document_revisions", _blocks())
    op.add_column(
        "document_revisions",
        sa.Column("reader_version", sa.SmallInteger(), server_default="0", nullable=False),
    )
    op.add_column("document_chunks", _blocks())
    op.add_column("document_chunks", sa.Column("context", sa.Text()))


def _blocks() -> sa.Column[object]:
    return sa.Column(
        "blocks", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_column("document_chunks", "context")
    op.drop_column("document_chunks", "blocks")
    op.drop_column("document_revisions", "reader_version")
    op.drop_column("document_revisions", "blocks")
