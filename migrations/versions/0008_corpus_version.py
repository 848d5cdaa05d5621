"""What kept search results depend on: whatever a search may read of passages and their vectors.

`documents_version` (0002) says when what counts has changed; this one says when the passages have,
whichever path wrote them: an ingestion, a program, an analyser of a newer version, a backfill.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_THIS_TRANSACTION = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"

# Also of passages that are not searchable yet: the weights of words are those of the whole index.
_CHUNKS = f"""
CREATE FUNCTION bump_corpus_version_of_chunk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET corpus_version = {_THIS_TRANSACTION}
    WHERE id IN (
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.collection_id END,
        CASE WHEN TG_OP <> 'DELETE' THEN NEW.collection_id END
    ) AND corpus_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER document_chunks_bump_corpus
    AFTER INSERT OR DELETE OR UPDATE ON document_chunks DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION bump_corpus_version_of_chunk();
"""

# Vectors of a model that only is being built change nothing.
_EMBEDDINGS = f"""
CREATE FUNCTION bump_corpus_version_of_embedding() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET corpus_version = {_THIS_TRANSACTION}
    WHERE embedding_model_id IN (
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.model_id END,
        CASE WHEN TG_OP <> 'DELETE' THEN NEW.model_id END
    ) AND corpus_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chunk_embeddings_bump_corpus
    AFTER INSERT OR DELETE OR UPDATE ON chunk_embeddings DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION bump_corpus_version_of_embedding();
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column(
        "collections",
        sa.Column("corpus_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    # Deferred, as those of 0002: the one row of a collection is locked for a moment at the end.
    op.execute(_CHUNKS)
    op.execute(_EMBEDDINGS)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute("DROP FUNCTION bump_corpus_version_of_embedding() CASCADE")
    op.execute("DROP FUNCTION bump_corpus_version_of_chunk() CASCADE")
    op.drop_column("collections", "corpus_version")
