"""Keep the terms of shared chunks in a table of their own, for a keyword index that weighs words by
shared documents alone.

Triggers fill it, so that every path that publishes, shares, hides, trashes or purges keeps it right.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_IS_SHARED = """
    d.visibility = 'shared' AND d.deleted_at IS NULL
    AND d.collection_id = (SELECT id FROM collections WHERE name = 'portal')
"""

_DOCUMENTS = f"""
CREATE FUNCTION share_document_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF (OLD.collection_id, OLD.visibility, OLD.current_job_id, OLD.deleted_at IS NULL)
           IS NOT DISTINCT FROM
           (NEW.collection_id, NEW.visibility, NEW.current_job_id, NEW.deleted_at IS NULL)
        THEN
            RETURN NULL;
        END IF;
        DELETE FROM shared_chunks WHERE document_id = NEW.id;
    END IF;
    INSERT INTO shared_chunks (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, c.terms
    FROM documents d JOIN document_chunks c ON c.job_id = d.current_job_id
    WHERE d.id = NEW.id AND {_IS_SHARED}
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER documents_share_chunks
    AFTER INSERT OR UPDATE OF collection_id, visibility, current_job_id, deleted_at ON documents
    FOR EACH ROW EXECUTE FUNCTION share_document_chunks();
"""

# Programs add chunks to what is searched already, and a newer analyser changes terms in place.
_CHUNKS = f"""
CREATE FUNCTION share_changed_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shared_chunks AS present (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, c.terms
    FROM changed c JOIN documents d ON d.current_job_id = c.job_id
    WHERE {_IS_SHARED}
    ON CONFLICT (chunk_id) DO UPDATE SET terms = excluded.terms
        WHERE present.terms <> excluded.terms;
    RETURN NULL;
END $$;
CREATE TRIGGER document_chunks_share_added AFTER INSERT ON document_chunks
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION share_changed_chunks();
CREATE TRIGGER document_chunks_share_changed AFTER UPDATE ON document_chunks
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION share_changed_chunks();
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "shared_chunks",
        sa.Column("chunk_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chunk_id"],
            ["document_chunks.id"],
            name=op.f("fk_shared_chunks_chunk_id_document_chunks"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("chunk_id", name=op.f("pk_shared_chunks")),
    )
    op.execute(_DOCUMENTS)
    op.execute(_CHUNKS)
    op.execute(
        f"""
        INSERT INTO shared_chunks (chunk_id, job_id, document_id, terms)
        SELECT c.id, c.job_id, c.document_id, c.terms
        FROM documents d JOIN document_chunks c ON c.job_id = d.current_job_id
        WHERE {_IS_SHARED}
        """
    )
    op.create_index("ix_shared_chunks_document_id", "shared_chunks", ["document_id"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute("DROP FUNCTION share_changed_chunks() CASCADE")
    op.execute("DROP FUNCTION share_document_chunks() CASCADE")
    op.drop_table("shared_chunks")
