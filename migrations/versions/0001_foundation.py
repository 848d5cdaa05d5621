"""All tables: accounts, documents, chunks with partitioned embeddings, conversations, the queue.

Partitions of chunk_embeddings, their typed indexes and the BM25 index depend on the model and on
the server's extensions; portal.store.embedding_models.registry and portal.database.bm25 make them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import Vector
from procrastinate.schema import SchemaManager
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.create_table(
        "bm25_index_state",
        sa.Column("index_name", sa.Text(), nullable=False),
        sa.Column("server_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rebuilt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("row_count", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), server_default=sa.text("'unknown'"), nullable=False),
        sa.PrimaryKeyConstraint("index_name", name="pk_bm25_index_state"),
    )
    op.create_table(
        "embedding_models",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'building'"), nullable=False),
        sa.Column("calibration", postgresql.JSONB(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("activated_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('building', 'active', 'retired')", name="ck_embedding_models_status_known"
        ),
        sa.CheckConstraint(
            "dimensions BETWEEN 1 AND 16000", name="ck_embedding_models_dimensions_range"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_embedding_models"),
        sa.UniqueConstraint("name", name="uq_embedding_models_name"),
    )
    op.create_table(
        "stored_files",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name="pk_stored_files"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("is_admin", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("language", sa.Text(), nullable=True),
        sa.Column("preferred_domain", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name="ck_users_name_length"),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_index("uq_users_name_lower", "users", [sa.literal_column("lower(name)")], unique=True)
    op.create_table(
        "collections",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("embedding_model_id", sa.Integer(), nullable=True),
        sa.Column("distance", sa.Text(), server_default=sa.text("'cosine'"), nullable=False),
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
            "distance IN ('cosine', 'l2', 'ip')", name="ck_collections_distance_known"
        ),
        sa.ForeignKeyConstraint(
            ["embedding_model_id"],
            ["embedding_models.id"],
            name="fk_collections_embedding_model_id",
            ondelete="RESTRICT",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_collections"),
        sa.UniqueConstraint("name", name="uq_collections_name"),
    )
    op.create_table(
        "conversations",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("title", sa.Text(), server_default=sa.text("''"), nullable=False),
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
            ["user_id"], ["users.id"], name="fk_conversations_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index(
        "ix_conversations_user_id_updated_at",
        "conversations",
        ["user_id", "updated_at"],
        unique=False,
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
            ["updated_by"], ["users.id"], name="fk_dynamic_config_updated_by", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("key", name="pk_dynamic_config"),
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
            ["user_id"], ["users.id"], name="fk_idempotency_keys_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name="pk_idempotency_keys"),
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
            ["created_by"], ["users.id"], name="fk_invitations_created_by", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["used_by"], ["users.id"], name="fk_invitations_used_by", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("secret_sha256", name="uq_invitations_secret_sha256"),
    )
    op.create_table(
        "stored_file_parts",
        sa.Column("file_id", sa.Uuid(), nullable=False),
        sa.Column("part_index", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["stored_files.id"],
            name="fk_stored_file_parts_file_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("file_id", "part_index", name="pk_stored_file_parts"),
    )
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
            "kind IN ('access', 'refresh', 'personal')", name="ck_tokens_kind_known"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_tokens_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"], unique=False)
    op.create_index("ix_tokens_family_id", "tokens", ["family_id"], unique=False)
    op.create_index("ix_tokens_user_id", "tokens", ["user_id"], unique=False)
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
            name="ck_documents_status_known",
        ),
        sa.CheckConstraint(
            "visibility IN ('shared', 'private')", name="ck_documents_visibility_known"
        ),
        sa.CheckConstraint(
            "purged_at IS NULL OR deleted_at IS NOT NULL", name="ck_documents_purged_is_deleted"
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name="fk_documents_collection_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name="fk_documents_owner_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
    )
    op.create_index(
        "ix_documents_collection_id_created_at",
        "documents",
        ["collection_id", "created_at", "id"],
        unique=False,
    )
    op.create_index("ix_documents_current_job_id", "documents", ["current_job_id"], unique=False)
    op.create_index(
        "ix_documents_owner_id_sha256", "documents", ["owner_id", "sha256"], unique=False
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("conversation_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'done'"), nullable=False),
        sa.Column(
            "retrieval", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("feedback", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "role IN ('user', 'assistant', 'system', 'tool')", name="ck_messages_role_known"
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_messages_conversation_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index(
        "ix_messages_conversation_id_created_at",
        "messages",
        ["conversation_id", "created_at", "id"],
        unique=False,
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
            name="fk_conversation_document_overrides_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_conversation_document_overrides_document_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "conversation_id", "document_id", name="pk_conversation_document_overrides"
        ),
    )
    op.create_index(
        "ix_conversation_document_overrides_document_id",
        "conversation_document_overrides",
        ["document_id"],
        unique=False,
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
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_document_revisions_document_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["stored_files.id"],
            name="fk_document_revisions_file_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_document_revisions"),
        sa.UniqueConstraint(
            "document_id",
            "revision_number",
            name="uq_document_revisions_document_id_revision_number",
        ),
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=True),
        sa.Column(
            "payload", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_notifications_document_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_notifications_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
    )
    op.create_index(
        "ix_notifications_user_id_created_at",
        "notifications",
        ["user_id", "created_at"],
        unique=False,
    )
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
            name="fk_user_document_defaults_document_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_user_document_defaults_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "document_id", name="pk_user_document_defaults"),
    )
    op.create_index(
        "ix_user_document_defaults_document_id",
        "user_document_defaults",
        ["document_id"],
        unique=False,
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
            ["document_id"], ["documents.id"], name="fk_citations_document_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_citations_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"],
            ["document_revisions.id"],
            name="fk_citations_revision_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_citations"),
        sa.UniqueConstraint("message_id", "marker", name="uq_citations_message_id_marker"),
    )
    op.create_index("ix_citations_document_id", "citations", ["document_id"], unique=False)
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
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
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
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'failed', 'cancelled')",
            name="ck_jobs_status_known",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name="fk_jobs_document_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["file_id"], ["stored_files.id"], name="fk_jobs_file_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["revision_id"],
            ["document_revisions.id"],
            name="fk_jobs_revision_id",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_document_id", "jobs", ["document_id"], unique=False)
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
        sa.Column("char_start", sa.Integer(), nullable=False),
        sa.Column("char_end", sa.Integer(), nullable=False),
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
            name="ck_document_chunks_char_range_ordered",
        ),
        sa.CheckConstraint("chunk_index >= 0", name="ck_document_chunks_chunk_index_positive"),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collections.id"],
            name="fk_document_chunks_collection_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_document_chunks_document_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["jobs.id"], name="fk_document_chunks_job_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_document_chunks"),
        sa.UniqueConstraint("job_id", "chunk_index", name="uq_document_chunks_job_id_chunk_index"),
    )
    op.create_index(
        "ix_document_chunks_created_at",
        "document_chunks",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )
    op.create_index(
        "ix_document_chunks_document_id", "document_chunks", ["document_id"], unique=False
    )
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
        "chunk_embeddings",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("chunk_id", sa.Uuid(), nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("embedding", Vector(), nullable=False),
        sa.ForeignKeyConstraint(
            ["chunk_id"],
            ["document_chunks.id"],
            name="fk_chunk_embeddings_chunk_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["embedding_models.id"],
            name="fk_chunk_embeddings_model_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "chunk_id", name="pk_chunk_embeddings"),
        postgresql_partition_by="LIST (model_id)",
    )
    op.create_index("ix_chunk_embeddings_chunk_id", "chunk_embeddings", ["chunk_id"], unique=False)
    op.create_index(
        "ix_chunk_embeddings_document_id", "chunk_embeddings", ["document_id"], unique=False
    )
    # Documents and jobs point at each other, so one of the two references comes last.
    op.create_foreign_key(
        "fk_documents_current_job_id",
        "documents",
        "jobs",
        ["current_job_id"],
        ["id"],
        ondelete="SET NULL",
    )
    op.execute("ALTER TABLE stored_file_parts ALTER COLUMN data SET STORAGE EXTERNAL")
    op.execute(_queue_schema())
    op.execute("INSERT INTO collections (name, distance) VALUES ('portal', 'cosine')")


def _queue_schema() -> sa.TextClause:
    """The job queue's own schema, as the pinned procrastinate ships it."""
    # A colon before a word would be taken for a bind parameter.
    return sa.text(SchemaManager.get_schema().replace(":", r"\:"))


def downgrade() -> None:
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
    op.drop_constraint("fk_documents_current_job_id", "documents", type_="foreignkey")
    op.drop_index("ix_chunk_embeddings_document_id", table_name="chunk_embeddings")
    op.drop_index("ix_chunk_embeddings_chunk_id", table_name="chunk_embeddings")
    op.drop_table("chunk_embeddings")
    op.drop_index(
        "uq_document_chunks_collection_id_external_id",
        table_name="document_chunks",
        postgresql_where=sa.text("external_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_document_chunks_terms_vector", table_name="document_chunks", postgresql_using="gin"
    )
    op.drop_index(
        "ix_document_chunks_metadata",
        table_name="document_chunks",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    )
    op.drop_index("ix_document_chunks_document_id", table_name="document_chunks")
    op.drop_index(
        "ix_document_chunks_created_at", table_name="document_chunks", postgresql_using="brin"
    )
    op.drop_table("document_chunks")
    op.drop_index("ix_jobs_document_id", table_name="jobs")
    op.drop_table("jobs")
    op.drop_index("ix_citations_document_id", table_name="citations")
    op.drop_table("citations")
    op.drop_index("ix_user_document_defaults_document_id", table_name="user_document_defaults")
    op.drop_table("user_document_defaults")
    op.drop_index("ix_notifications_user_id_created_at", table_name="notifications")
    op.drop_table("notifications")
    op.drop_table("document_revisions")
    op.drop_index(
        "ix_conversation_document_overrides_document_id",
        table_name="conversation_document_overrides",
    )
    op.drop_table("conversation_document_overrides")
    op.drop_index("ix_messages_conversation_id_created_at", table_name="messages")
    op.drop_table("messages")
    op.drop_index("ix_documents_owner_id_sha256", table_name="documents")
    op.drop_index("ix_documents_current_job_id", table_name="documents")
    op.drop_index("ix_documents_collection_id_created_at", table_name="documents")
    op.drop_table("documents")
    op.drop_index("ix_tokens_user_id", table_name="tokens")
    op.drop_index("ix_tokens_family_id", table_name="tokens")
    op.drop_index("ix_tokens_expires_at", table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("stored_file_parts")
    op.drop_table("invitations")
    op.drop_table("idempotency_keys")
    op.drop_table("dynamic_config")
    op.drop_index("ix_conversations_user_id_updated_at", table_name="conversations")
    op.drop_table("conversations")
    op.drop_table("collections")
    op.drop_index("uq_users_name_lower", table_name="users")
    op.drop_table("users")
    op.drop_table("stored_files")
    op.drop_table("embedding_models")
    op.drop_table("bm25_index_state")
