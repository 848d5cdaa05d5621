"""Create the first schema: tables, triggers and the job queue.

Partitions of chunk_embeddings, their typed indexes and the BM25 indexes depend on the model and on
the server's extensions; portal.store.embedding_models.registry and portal.database.bm25 make them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from procrastinate.schema import SchemaManager
from sqlalchemy.dialects import postgresql

# Development databases stand at this number already; it is kept so that they go on from here.
revision = "0022"
down_revision = None

# --- versions -------------------------------------------------------------------------------------
# A version is the id of the transaction that last changed something: what was computed once is
# trusted until it changes. Triggers write it, so that no path that toggles, trashes or publishes
# can forget to.

_THIS_TRANSACTION = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"

# Deferred to the end of the transaction: the one row of a collection is locked for a moment only,
# and after all others, so that two uploads neither wait for each other nor deadlock.
_DOCUMENTS_VERSION = f"""
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
"""

# Also of chunks that are not searchable yet: word weights come from the whole index.
_CORPUS_VERSION_OF_CHUNKS = f"""
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

# Vectors of a model that is still being built change nothing.
_CORPUS_VERSION_OF_EMBEDDINGS = f"""
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

_SELECTIONS = {
    "user_document_defaults": ("users", "user_id"),
    "conversation_document_overrides": ("conversations", "conversation_id"),
}


def _selection_trigger(table: str, owner: str, owner_key: str) -> str:
    """Return triggers that fire once a statement: "all off" for ten thousand documents bumps once."""
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


# --- shared chunks --------------------------------------------------------------------------------
# The terms of chunks that everyone may see, kept apart for a keyword index that weighs words by
# shared documents alone.

_IS_SHARED = """
    d.visibility = 'shared' AND d.deleted_at IS NULL
    AND d.collection_id = (SELECT id FROM collections WHERE name = 'portal')
"""

_SHARED_CHUNKS_OF_DOCUMENTS = f"""
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
_SHARED_CHUNKS_OF_CHUNKS = f"""
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

_FUNCTIONS = (
    "bump_documents_version",
    "count_document_chunks",
    "bump_corpus_version_of_chunk",
    "bump_corpus_version_of_embedding",
    "share_document_chunks",
    "share_changed_chunks",
    *(f"bump_{table}_{event}" for table in _SELECTIONS for event in ("insert", "delete", "update")),
)
_TABLES = (
    "audit_log",
    "bm25_index_state",
    "embedding_models",
    "oidc_used_values",
    "spent_challenges",
    "users",
    "vocabulary",
    "collections",
    "conversations",
    "dynamic_config",
    "idempotency_keys",
    "invitations",
    "known_devices",
    "outside_identities",
    "passkeys",
    "password_resets",
    "recovery_codes",
    "second_factor_failures",
    "sessions",
    "stored_files",
    "tokens",
    "totp_secrets",
    "documents",
    "messages",
    "oidc_sign_ins",
    "stored_file_parts",
    "conversation_document_overrides",
    "document_revisions",
    "user_document_defaults",
    "citations",
    "jobs",
    "document_chunks",
    "notifications",
    "chunk_embeddings",
    "shared_chunks",
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    _create_tables()
    # Originals are compressed already, most of them.
    op.execute("ALTER TABLE stored_file_parts ALTER COLUMN data SET STORAGE EXTERNAL")
    for statements in (
        _DOCUMENTS_VERSION,
        _CHUNK_COUNT,
        _CORPUS_VERSION_OF_CHUNKS,
        _CORPUS_VERSION_OF_EMBEDDINGS,
        _SHARED_CHUNKS_OF_DOCUMENTS,
        _SHARED_CHUNKS_OF_CHUNKS,
        *(_selection_trigger(table, *owner) for table, owner in _SELECTIONS.items()),
    ):
        op.execute(statements)
    op.execute(_queue_schema())
    op.execute("INSERT INTO collections (name, distance) VALUES ('portal', 'cosine')")


def _create_tables() -> None:  # noqa: PLR0915 - one statement a table and index
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Uuid(), nullable=True),
        sa.Column("actor_name", sa.Text(), nullable=True),
        sa.Column("name_digest", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("subject_kind", sa.Text(), nullable=True),
        sa.Column("subject_id", sa.Text(), nullable=True),
        sa.Column("subject_title", sa.Text(), nullable=True),
        sa.Column(
            "details", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.CheckConstraint(
            "source IN ('web', 'command_line', 'worker')", name=op.f("ck_audit_log_source_known")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(
        "ix_audit_log_actor_name_lower",
        "audit_log",
        [sa.literal_column("lower(actor_name)"), "created_at", "id"],
    )
    op.create_index("ix_audit_log_created_at_id", "audit_log", ["created_at", "id"])
    op.create_index("ix_audit_log_event_created_at_id", "audit_log", ["event", "created_at", "id"])
    op.create_index("ix_audit_log_name_digest", "audit_log", ["name_digest", "created_at", "id"])
    op.create_index(
        "ix_audit_log_subject_kind_subject_id", "audit_log", ["subject_kind", "subject_id"]
    )
    op.create_table(
        "bm25_index_state",
        sa.Column("index_name", sa.Text(), nullable=False),
        sa.Column("server_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rebuilt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("row_count", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), server_default=sa.text("'unknown'"), nullable=False),
        sa.PrimaryKeyConstraint("index_name", name=op.f("pk_bm25_index_state")),
    )
    op.create_table(
        "embedding_models",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column(
            "options", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("index_method", sa.Text(), server_default=sa.text("'hnsw'"), nullable=False),
        sa.Column("vector_type", sa.Text(), server_default=sa.text("'halfvec'"), nullable=False),
        sa.Column("index_axis", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'building'"), nullable=False),
        sa.Column("is_complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("calibration", postgresql.JSONB(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("activated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("done_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("comparison", postgresql.JSONB(), nullable=True),
        sa.CheckConstraint(
            "index_axis ~ '^m[0-9]+_[0-9a-f]{12}$'",
            name=op.f("ck_embedding_models_index_axis_plain"),
        ),
        sa.CheckConstraint(
            "index_method IN ('hnsw', 'ivfflat')",
            name=op.f("ck_embedding_models_index_method_known"),
        ),
        sa.CheckConstraint(
            "stage IN ('queued', 'embedding', 'indexing', 'comparing', 'failed')",
            name=op.f("ck_embedding_models_stage_known"),
        ),
        sa.CheckConstraint(
            "status IN ('building', 'ready', 'active', 'retired')",
            name=op.f("ck_embedding_models_status_known"),
        ),
        sa.CheckConstraint(
            "vector_type IN ('halfvec', 'vector', 'bit')",
            name=op.f("ck_embedding_models_vector_type_known"),
        ),
        sa.CheckConstraint(
            "dimensions BETWEEN 1 AND 16000", name=op.f("ck_embedding_models_dimensions_range")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_embedding_models")),
        sa.UniqueConstraint("name", name=op.f("uq_embedding_models_name")),
    )
    op.create_table(
        "oidc_used_values",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oidc_used_values")),
    )
    op.create_index(op.f("ix_oidc_used_values_expires_at"), "oidc_used_values", ["expires_at"])
    op.create_table(
        "spent_challenges",
        sa.Column("challenge_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("challenge_sha256", name=op.f("pk_spent_challenges")),
    )
    op.create_index(op.f("ix_spent_challenges_expires_at"), "spent_challenges", ["expires_at"])
    op.create_table(
        "users",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_skeleton", sa.Text(), nullable=True),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("is_admin", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("preferred_domain", sa.Text(), nullable=True),
        sa.Column(
            "selection_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f("ck_users_name_length")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name_skeleton", name=op.f("uq_users_name_skeleton")),
    )
    op.create_index("uq_users_name_lower", "users", [sa.literal_column("lower(name)")], unique=True)
    op.create_table(
        "vocabulary",
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("keys", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("word", name=op.f("pk_vocabulary")),
    )
    op.create_index(
        "ix_vocabulary_keys", "vocabulary", ["keys"], unique=False, postgresql_using="gin"
    )
    op.create_table(
        "collections",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("embedding_model_id", sa.Integer(), nullable=True),
        sa.Column("distance", sa.Text(), server_default=sa.text("'cosine'"), nullable=False),
        sa.Column(
            "documents_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.Column("corpus_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "metadata", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "distance IN ('cosine', 'l2', 'ip')", name=op.f("ck_collections_distance_known")
        ),
        sa.ForeignKeyConstraint(
            ["embedding_model_id"],
            ["embedding_models.id"],
            name=op.f("fk_collections_embedding_model_id"),
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_collections")),
        sa.UniqueConstraint("name", name=op.f("uq_collections_name")),
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("title", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "selection_version", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_conversations_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
    )
    op.create_index(
        "ix_conversations_user_id_updated_at", "conversations", ["user_id", "updated_at"]
    )
    op.create_table(
        "dynamic_config",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", postgresql.JSONB(), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("updated_by", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["updated_by"],
            ["users.id"],
            name=op.f("fk_dynamic_config_updated_by"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_dynamic_config")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_sha256", sa.Text(), nullable=False),
        sa.Column("response", postgresql.JSONB(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_idempotency_keys_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_by", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_invitations_created_by"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["used_by"], ["users.id"], name=op.f("fk_invitations_used_by"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_invitations_secret_sha256")),
    )
    op.create_table(
        "known_devices",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("device_sha256", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "last_used_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_known_devices_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "device_sha256", name=op.f("pk_known_devices")),
    )
    op.create_index(op.f("ix_known_devices_last_used_at"), "known_devices", ["last_used_at"])
    op.create_table(
        "outside_identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_outside_identities_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_outside_identities")),
    )
    op.create_index(op.f("ix_outside_identities_user_id"), "outside_identities", ["user_id"])
    op.create_table(
        "passkeys",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("rp_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column(
            "transports",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f("ck_passkeys_name_length")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_passkeys_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("credential_id", name=op.f("uq_passkeys_credential_id")),
    )
    op.create_index(op.f("ix_passkeys_user_id"), "passkeys", ["user_id"])
    op.create_table(
        "password_resets",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_password_resets_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_password_resets")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_password_resets_secret_sha256")),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("code_sha256", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_recovery_codes_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "code_sha256", name=op.f("pk_recovery_codes")),
    )
    op.create_table(
        "second_factor_failures",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("sign_in_sha256", sa.LargeBinary(), nullable=True),
        sa.Column(
            "failed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "method IN ('totp', 'recovery_code')",
            name=op.f("ck_second_factor_failures_method_known"),
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_second_factor_failures_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_second_factor_failures")),
    )
    op.create_index(
        "ix_second_factor_failures_recent",
        "second_factor_failures",
        ["user_id", "method", "failed_at"],
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("methods", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("device_sha256", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "authenticated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "last_used_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('browser', 'api', 'command_line')", name=op.f("ck_sessions_kind_known")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])
    op.create_table(
        "stored_files",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=True),
        sa.Column("media_type", sa.Text(), nullable=True),
        sa.Column("uploaded_by", sa.Uuid(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["uploaded_by"],
            ["users.id"],
            name=op.f("fk_stored_files_uploaded_by"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stored_files")),
    )
    op.create_index(op.f("ix_stored_files_sha256"), "stored_files", ["sha256"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("family_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column(
            "scopes",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{read,write,admin}'::text[]"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('access', 'refresh', 'personal', 'outside')",
            name=op.f("ck_tokens_kind_known"),
        ),
        sa.CheckConstraint(
            "scopes <@ '{read,write,admin}'::text[]", name=op.f("ck_tokens_scopes_known")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_index(op.f("ix_tokens_expires_at"), "tokens", ["expires_at"])
    op.create_index(op.f("ix_tokens_family_id"), "tokens", ["family_id"])
    op.create_index(op.f("ix_tokens_user_id"), "tokens", ["user_id"])
    op.create_table(
        "totp_secrets",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_step", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_totp_secrets_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_totp_secrets")),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("collection_id", sa.Uuid(), nullable=False),
        sa.Column("owner_id", sa.Uuid(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("visibility", sa.Text(), server_default=sa.text("'shared'"), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'queued'"), nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("current_job_id", sa.Uuid(), nullable=True),
        sa.Column("chunk_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("purged_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'failed')",
            name=op.f("ck_documents_status_known"),
        ),
        sa.CheckConstraint(
            "visibility IN ('shared', 'private')", name=op.f("ck_documents_visibility_known")
        ),
        sa.CheckConstraint(
            "purged_at IS NULL OR deleted_at IS NOT NULL",
            name=op.f("ck_documents_purged_is_deleted"),
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_documents_collection_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["current_job_id"],
            ["jobs.id"],
            name=op.f("fk_documents_current_job_id"),
            ondelete="SET NULL",
            use_alter=True,
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_documents_owner_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
    )
    op.create_index(
        "ix_documents_collection_id_created_at", "documents", ["collection_id", "created_at", "id"]
    )
    op.create_index("ix_documents_current_job_id", "documents", ["current_job_id"])
    op.create_index("ix_documents_owner_id_sha256", "documents", ["owner_id", "sha256"])
    op.create_table(
        "messages",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'done'"), nullable=False),
        sa.Column(
            "retrieval", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("support", postgresql.JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("feedback", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "feedback IN ('useful', 'not_useful')", name=op.f("ck_messages_feedback_known")
        ),
        sa.CheckConstraint(
            "role IN ('user', 'assistant', 'system', 'tool')", name=op.f("ck_messages_role_known")
        ),
        sa.CheckConstraint(
            "status IN ('streaming', 'done', 'stopped', 'abstained', 'unavailable')",
            name=op.f("ck_messages_status_known"),
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_messages_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
    )
    op.create_index(
        "ix_messages_conversation_id_position", "messages", ["conversation_id", "position"]
    )
    op.create_table(
        "oidc_sign_ins",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=True),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("sid", sa.Text(), nullable=True),
        sa.Column("id_token", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_oidc_sign_ins_session_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_oidc_sign_ins_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oidc_sign_ins")),
        sa.UniqueConstraint("session_id", name=op.f("uq_oidc_sign_ins_session_id")),
    )
    op.create_index("ix_oidc_sign_ins_issuer_sid", "oidc_sign_ins", ["issuer", "sid"])
    op.create_index("ix_oidc_sign_ins_issuer_subject", "oidc_sign_ins", ["issuer", "subject"])
    op.create_index(op.f("ix_oidc_sign_ins_user_id"), "oidc_sign_ins", ["user_id"])
    op.create_table(
        "stored_file_parts",
        sa.Column("file_id", sa.Uuid(), nullable=False),
        sa.Column("part_index", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["stored_files.id"],
            name=op.f("fk_stored_file_parts_file_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("file_id", "part_index", name=op.f("pk_stored_file_parts")),
    )
    op.create_table(
        "conversation_document_overrides",
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_conversation_document_overrides_conversation_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_conversation_document_overrides_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "conversation_id", "document_id", name=op.f("pk_conversation_document_overrides")
        ),
    )
    op.create_index(
        op.f("ix_conversation_document_overrides_document_id"),
        "conversation_document_overrides",
        ["document_id"],
    )
    op.create_table(
        "document_revisions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("revision_number", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Uuid(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("extractor", sa.Text(), nullable=False),
        sa.Column("encoding", sa.Text(), nullable=True),
        sa.Column("character_count", sa.Integer(), nullable=False),
        sa.Column(
            "pages", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column(
            "headings", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column(
            "warnings", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column("characters_added", sa.Integer(), nullable=True),
        sa.Column("characters_removed", sa.Integer(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_revisions_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["stored_files.id"],
            name=op.f("fk_document_revisions_file_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_revisions")),
        sa.UniqueConstraint(
            "document_id",
            "revision_number",
            name=op.f("uq_document_revisions_document_id_revision_number"),
        ),
    )
    op.create_index(op.f("ix_document_revisions_file_id"), "document_revisions", ["file_id"])
    op.create_table(
        "user_document_defaults",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_user_document_defaults_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_user_document_defaults_user_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "document_id", name=op.f("pk_user_document_defaults")),
    )
    op.create_index(
        op.f("ix_user_document_defaults_document_id"), "user_document_defaults", ["document_id"]
    )
    op.create_table(
        "citations",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("marker", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("revision_id", sa.Uuid(), nullable=True),
        sa.Column("chunk_id", sa.Uuid(), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.Column("quote_sha256", sa.Text(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("heading", sa.Text(), nullable=True),
        sa.Column(
            "scores", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("was_cited", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_citations_document_id"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_citations_message_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"],
            ["document_revisions.id"],
            name=op.f("fk_citations_revision_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_citations")),
        sa.UniqueConstraint("message_id", "marker", name=op.f("uq_citations_message_id_marker")),
    )
    op.create_index(op.f("ix_citations_document_id"), "citations", ["document_id"])
    op.create_index(op.f("ix_citations_revision_id"), "citations", ["revision_id"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("file_id", sa.Uuid(), nullable=True),
        sa.Column("revision_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Text(), server_default=sa.text("'queued'"), nullable=False),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("done_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("turn", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("deaths", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column(
            "config", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'failed', 'cancelled')",
            name=op.f("ck_jobs_status_known"),
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name=op.f("fk_jobs_document_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["file_id"], ["stored_files.id"], name=op.f("fk_jobs_file_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"],
            ["document_revisions.id"],
            name=op.f("fk_jobs_revision_id"),
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_created_at", "jobs", ["created_at", "id"])
    op.create_index(op.f("ix_jobs_document_id"), "jobs", ["document_id"])
    op.create_index(op.f("ix_jobs_file_id"), "jobs", ["file_id"])
    op.create_index(op.f("ix_jobs_revision_id"), "jobs", ["revision_id"])
    op.create_index(
        "ix_jobs_turn",
        "jobs",
        ["turn"],
        unique=False,
        postgresql_where=sa.text("status IN ('queued', 'processing')"),
    )
    op.create_table(
        "document_chunks",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("collection_id", sa.Uuid(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("chunk_index", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("terms", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "terms_vector",
            postgresql.TSVECTOR(),
            sa.Computed("to_tsvector('simple'::regconfig, terms)", persisted=True),
            nullable=False,
        ),
        sa.Column(
            "analyser_version", sa.SmallInteger(), server_default=sa.text("0"), nullable=False
        ),
        sa.Column("language", sa.Text(), server_default=sa.text("'other'"), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("heading", sa.Text(), nullable=True),
        sa.Column("char_start", sa.Integer(), nullable=True),
        sa.Column("char_end", sa.Integer(), nullable=True),
        sa.Column(
            "metadata", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "char_start >= 0 AND char_end >= char_start",
            name=op.f("ck_document_chunks_char_range_ordered"),
        ),
        sa.CheckConstraint(
            "chunk_index >= 0", name=op.f("ck_document_chunks_chunk_index_positive")
        ),
        sa.CheckConstraint(
            "num_nulls(char_start, char_end) <> 1", name=op.f("ck_document_chunks_char_range_whole")
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name=op.f("fk_document_chunks_collection_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_chunks_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_document_chunks_job_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_chunks")),
        sa.UniqueConstraint(
            "job_id", "chunk_index", name=op.f("uq_document_chunks_job_id_chunk_index")
        ),
    )
    op.create_index("ix_document_chunks_analyser_version", "document_chunks", ["analyser_version"])
    op.create_index(
        "ix_document_chunks_content",
        "document_chunks",
        ["content"],
        unique=False,
        postgresql_using="hash",
    )
    op.create_index(
        "ix_document_chunks_created_at",
        "document_chunks",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )
    op.create_index("ix_document_chunks_document_id", "document_chunks", ["document_id"])
    op.create_index(
        "ix_document_chunks_metadata",
        "document_chunks",
        ["metadata"],
        unique=False,
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    )
    op.create_index(
        "ix_document_chunks_terms_vector",
        "document_chunks",
        ["terms_vector"],
        unique=False,
        postgresql_using="gin",
    )
    op.create_index(
        "uq_document_chunks_collection_id_external_id",
        "document_chunks",
        ["collection_id", "external_id"],
        unique=True,
        postgresql_where=sa.text("external_id IS NOT NULL"),
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column(
            "payload", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_notifications_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name=op.f("fk_notifications_job_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notifications_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notifications")),
        sa.UniqueConstraint(
            "job_id", "attempt", "user_id", name=op.f("uq_notifications_job_id_attempt_user_id")
        ),
    )
    op.create_index("ix_notifications_document_id", "notifications", ["document_id"])
    op.create_index(
        "ix_notifications_undelivered",
        "notifications",
        ["user_id", "created_at"],
        unique=False,
        postgresql_where=sa.text("delivered_at IS NULL"),
    )
    op.create_index(
        "ix_notifications_unread",
        "notifications",
        ["user_id"],
        unique=False,
        postgresql_where=sa.text("read_at IS NULL"),
    )
    op.create_index(
        "ix_notifications_user_id_created_at", "notifications", ["user_id", "created_at"]
    )
    op.create_table(
        "chunk_embeddings",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("chunk_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("embedding", Vector(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chunk_id"],
            ["document_chunks.id"],
            name=op.f("fk_chunk_embeddings_chunk_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["embedding_models.id"],
            name=op.f("fk_chunk_embeddings_model_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "chunk_id", name=op.f("pk_chunk_embeddings")),
        postgresql_partition_by="LIST (model_id)",
    )
    op.create_index("ix_chunk_embeddings_chunk_id", "chunk_embeddings", ["chunk_id"])
    op.create_index("ix_chunk_embeddings_job_id", "chunk_embeddings", ["job_id"])
    op.create_table(
        "shared_chunks",
        sa.Column("chunk_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chunk_id"],
            ["document_chunks.id"],
            name=op.f("fk_shared_chunks_chunk_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("chunk_id", name=op.f("pk_shared_chunks")),
    )
    op.create_index(op.f("ix_shared_chunks_document_id"), "shared_chunks", ["document_id"])
    # Documents and jobs refer to each other, so one of the two references comes last.
    op.create_foreign_key(
        "fk_documents_current_job_id",
        "documents",
        "jobs",
        ["current_job_id"],
        ["id"],
        ondelete="SET NULL",
    )


def _queue_schema() -> sa.TextClause:
    """Return the job queue's own schema, as the pinned procrastinate ships it."""
    # A colon before a word would be taken for a bind parameter.
    return sa.text(SchemaManager.get_schema().replace(":", r"\:"))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute(
        """
        DO $$
        DECLARE item record;
        BEGIN
            FOR item IN SELECT oid::regprocedure AS name FROM pg_proc
                WHERE proname LIKE 'procrastinate%' AND pronamespace = current_schema()::regnamespace
            LOOP EXECUTE 'DROP FUNCTION ' || item.name || ' CASCADE'; END LOOP;
            FOR item IN SELECT oid::regclass AS name FROM pg_class
                WHERE relname LIKE 'procrastinate%' AND relkind = 'r'
                AND relnamespace = current_schema()::regnamespace
            LOOP EXECUTE 'DROP TABLE ' || item.name || ' CASCADE'; END LOOP;
            FOR item IN SELECT oid::regtype AS name FROM pg_type
                WHERE typname LIKE 'procrastinate%' AND typtype IN ('e', 'c')
                AND typnamespace = current_schema()::regnamespace
            LOOP EXECUTE 'DROP TYPE ' || item.name || ' CASCADE'; END LOOP;
        END $$
        """
    )
    for function in _FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}() CASCADE")
    op.drop_constraint("fk_documents_current_job_id", "documents", type_="foreignkey")
    for table in reversed(_TABLES):
        op.drop_table(table)
