"""Versions of what each person sees, so that a set computed once can be trusted until it changes.

A version is the id of the transaction that last changed something; transactions never share one.
Triggers write it, so that no path that toggles, trashes or publishes can forget to.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_VERSIONED = {
    "collections": "documents_version",
    "users": "selection_version",
    "conversations": "selection_version",
}

_THIS_TRANSACTION = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"

# Deferred to the end of the transaction: the one row of a collection is locked for a moment only,
# and after all others, so that two uploads neither wait for each other nor deadlock.
_DOCUMENTS = f"""
CREATE FUNCTION bump_documents_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET documents_version = {_THIS_TRANSACTION}
    WHERE id IN (
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.collection_id END,
        CASE WHEN TG_OP <> 'DELETE' THEN NEW.collection_id END
    ) AND documents_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER documents_bump_version
    AFTER INSERT OR DELETE OR UPDATE OF collection_id, owner_id, visibility, current_job_id,
        chunk_count, deleted_at, title, domain, media_type
    ON documents DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION bump_documents_version();
"""

# Counts are for choosing a plan: a few chunks more or less change nothing.
_CHUNK_COUNT = """
CREATE FUNCTION count_document_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.chunk_count = (SELECT count(*) FROM document_chunks WHERE job_id = NEW.current_job_id);
    RETURN NEW;
END $$;
CREATE TRIGGER documents_count_chunks BEFORE INSERT OR UPDATE OF current_job_id ON documents
    FOR EACH ROW EXECUTE FUNCTION count_document_chunks();
UPDATE documents SET chunk_count =
    (SELECT count(*) FROM document_chunks WHERE job_id = documents.current_job_id)
WHERE current_job_id IS NOT NULL;
"""


def _selection_trigger(table: str, owner: str, owner_key: str) -> str:
    """A statement at a time: "all off" for ten thousand documents bumps once."""
    events = {"INSERT": ["NEW"], "DELETE": ["OLD"], "UPDATE": ["OLD", "NEW"]}
    triggers = "".join(
        f"""
CREATE TRIGGER {table}_bump_version_{event.lower()} AFTER {event} ON {table}
    REFERENCING {" ".join(f"{image} TABLE AS changed_{image.lower()}" for image in images)}
    FOR EACH STATEMENT EXECUTE FUNCTION bump_{table}_{event.lower()}();
"""
        for event, images in events.items()
    )
    functions = "".join(
        f"""
CREATE FUNCTION bump_{table}_{event.lower()}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {owner} SET selection_version = {_THIS_TRANSACTION}
    WHERE id IN ({" UNION ".join(f"SELECT {owner_key} FROM changed_{i.lower()}" for i in images)})
      AND selection_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
"""
        for event, images in events.items()
    )
    return functions + triggers


_SELECTIONS = {
    "user_document_defaults": ("users", "user_id"),
    "conversation_document_overrides": ("conversations", "conversation_id"),
}


def upgrade() -> None:
    for table, column in _VERSIONED.items():
        op.add_column(
            table, sa.Column(column, sa.BigInteger(), server_default=sa.text("0"), nullable=False)
        )
    op.add_column(
        "documents",
        sa.Column("chunk_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
    )
    # A few documents out of many are compared one by one: their vectors are found by job.
    op.drop_index("ix_chunk_embeddings_document_id", table_name="chunk_embeddings")
    op.create_index("ix_chunk_embeddings_job_id", "chunk_embeddings", ["job_id"])
    op.execute(_CHUNK_COUNT)
    op.execute(_DOCUMENTS)
    for table, (owner, owner_key) in _SELECTIONS.items():
        op.execute(_selection_trigger(table, owner, owner_key))


def downgrade() -> None:
    for table in _SELECTIONS:
        for event in ("insert", "delete", "update"):
            op.execute(f"DROP FUNCTION bump_{table}_{event}() CASCADE")
    op.execute("DROP FUNCTION bump_documents_version() CASCADE")
    op.execute("DROP FUNCTION count_document_chunks() CASCADE")
    op.drop_index("ix_chunk_embeddings_job_id", table_name="chunk_embeddings")
    op.create_index("ix_chunk_embeddings_document_id", "chunk_embeddings", ["document_id"])
    op.drop_column("documents", "chunk_count")
    for table, column in _VERSIONED.items():
        op.drop_column(table, column)
