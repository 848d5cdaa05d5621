"""The words of the corpus, which misspelt questions are corrected by.

portal.services.documents.reanalysis fills it for passages that are already there; the trigram index is made
where the server has pg_trgm, by portal.store.documents.vocabulary.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "vocabulary",
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("keys", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("word", name="pk_vocabulary"),
    )
    op.create_index("ix_vocabulary_keys", "vocabulary", ["keys"], postgresql_using="gin")
    op.execute("SET LOCAL lock_timeout = '10s'")
    # Housekeeping looks for passages of older analysers again and again, and mostly finds none.
    op.create_index("ix_document_chunks_analyser_version", "document_chunks", ["analyser_version"])


def downgrade() -> None:
    op.drop_index("ix_document_chunks_analyser_version", table_name="document_chunks")
    op.drop_table("vocabulary")
