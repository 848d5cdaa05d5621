"""Leave words to later when a transaction shares many chunks: pg_textsearch lets no one search by
words between the first word that a transaction adds and its end."""

from __future__ import annotations

from alembic import op

revision = "0065"
down_revision = "0064"

_IS_SHARED = """
    d.visibility = 'shared' AND d.deleted_at IS NULL AND d.gate_id IS NULL
    AND d.collection_id = (SELECT id FROM collections WHERE name = 'portal')
"""
_KEY = (
    "{0}.collection_id, {0}.visibility, {0}.current_job_id, {0}.deleted_at IS NULL,"
    " {0}.gate_id IS NULL"
)
_MAX_CHUNKS = 500


def _share_documents(*, declared: str, terms: str, after: str) -> str:
    return f"""
CREATE OR REPLACE FUNCTION share_document_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
{declared}
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF ({_KEY.format("OLD")}) IS NOT DISTINCT FROM ({_KEY.format("NEW")}) THEN
            RETURN NULL;
        END IF;
        DELETE FROM shared_chunks WHERE document_id = NEW.id;
    END IF;
    INSERT INTO shared_chunks (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, {terms}
    FROM documents d JOIN document_chunks c ON c.job_id = d.current_job_id
    WHERE d.id = NEW.id AND {_IS_SHARED}
    ON CONFLICT DO NOTHING;
    {after}
    RETURN NULL;
END $$;
"""


def _share_changed(is_other: str) -> str:
    return f"""
CREATE OR REPLACE FUNCTION share_changed_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shared_chunks AS present (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, c.terms
    FROM changed c JOIN documents d ON d.current_job_id = c.job_id
    WHERE {_IS_SHARED}
    ON CONFLICT (chunk_id) DO UPDATE SET terms = excluded.terms WHERE {is_other};
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute(
        "CREATE INDEX ix_shared_chunks_without_words ON shared_chunks (chunk_id)"
        " WHERE terms IS NULL"
    )
    # After the scan of the table, since nothing reads it from here to the end.
    op.alter_column("shared_chunks", "terms", nullable=True)
    op.execute(
        _share_documents(
            # The number of chunks that this transaction has shared so far.
            declared="""DECLARE
    shared integer := coalesce(nullif(current_setting('portal.shared', true), ''), '0')::integer;
    added integer;""",
            terms=f"CASE WHEN shared + row_number() OVER () <= {_MAX_CHUNKS} THEN c.terms END",
            after="""GET DIAGNOSTICS added = ROW_COUNT;
    PERFORM set_config('portal.shared', (shared + added)::text, true);""",
        )
    )
    op.execute(_share_changed("present.terms IS DISTINCT FROM excluded.terms"))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute(
        "UPDATE shared_chunks s SET terms = c.terms FROM document_chunks c"
        " WHERE c.id = s.chunk_id AND s.terms IS NULL"
    )
    op.execute("SET CONSTRAINTS ALL IMMEDIATE")
    op.execute("DROP INDEX ix_shared_chunks_without_words")
    op.alter_column("shared_chunks", "terms", nullable=False)
    op.execute(_share_documents(declared="", terms="c.terms", after=""))
    op.execute(_share_changed("present.terms <> excluded.terms"))
