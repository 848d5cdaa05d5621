"""Chunks and their embeddings: what search reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CheckConstraint,
    Computed,
    ForeignKey,
    Identity,
    Index,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, CreatedAt, JsonObject, UuidKey


class DocumentChunkRow(Base):
    """A passage. It is searchable when its document's `current_job_id` is its job."""

    __tablename__ = "document_chunks"

    id: Mapped[UuidKey]
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    document_id: Mapped[UUID] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    collection_id: Mapped[UUID] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    external_id: Mapped[str | None] = mapped_column(Text)
    chunk_index: Mapped[int]
    content: Mapped[str] = mapped_column(Text)
    # Analysed terms, joined by spaces: what both keyword backends index with `simple`.
    terms: Mapped[str] = mapped_column(Text, server_default=text("''"))
    terms_vector: Mapped[Any] = mapped_column(
        TSVECTOR, Computed("to_tsvector('simple'::regconfig, terms)", persisted=True)
    )
    analyser_version: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    language: Mapped[str] = mapped_column(Text, server_default=text("'other'"))
    page: Mapped[int | None]
    heading: Mapped[str | None] = mapped_column(Text)
    char_start: Mapped[int]
    char_end: Mapped[int]
    # "metadata" is taken on declarative classes; the column keeps the contract's name.
    attributes: Mapped[JsonObject] = mapped_column("metadata")
    created_at: Mapped[CreatedAt]

    __table_args__ = (
        UniqueConstraint("job_id", "chunk_index"),
        CheckConstraint("chunk_index >= 0", name="chunk_index_positive"),
        CheckConstraint("char_start >= 0 AND char_end >= char_start", name="char_range_ordered"),
        Index("ix_document_chunks_document_id", "document_id"),
        Index(
            "uq_document_chunks_collection_id_external_id",
            "collection_id",
            "external_id",
            unique=True,
            postgresql_where=text("external_id IS NOT NULL"),
        ),
        Index("ix_document_chunks_terms_vector", "terms_vector", postgresql_using="gin"),
        Index(
            "ix_document_chunks_metadata",
            "metadata",
            postgresql_using="gin",
            postgresql_ops={"metadata": "jsonb_path_ops"},
        ),
        Index("ix_document_chunks_created_at", "created_at", postgresql_using="brin"),
    )


class EmbeddingModelRow(Base):
    """A model whose vectors are kept; each has its own partition and index."""

    __tablename__ = "embedding_models"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    provider: Mapped[str] = mapped_column(Text)
    dimensions: Mapped[int]
    status: Mapped[str] = mapped_column(Text, server_default=text("'building'"))
    calibration: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
    activated_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("dimensions BETWEEN 1 AND 16000", name="dimensions_range"),
        CheckConstraint("status IN ('building', 'active', 'retired')", name="status_known"),
    )


class ChunkEmbeddingRow(Base):
    """The vector of a chunk by a model. Document and job stand here too, so that the vector
    leg filters without touching the much wider chunks."""

    __tablename__ = "chunk_embeddings"

    model_id: Mapped[int] = mapped_column(
        ForeignKey("embedding_models.id", ondelete="CASCADE"), primary_key=True
    )
    chunk_id: Mapped[UUID] = mapped_column(
        ForeignKey("document_chunks.id", ondelete="CASCADE"), primary_key=True
    )
    document_id: Mapped[UUID]
    job_id: Mapped[UUID]
    embedding: Mapped[Any] = mapped_column(Vector())

    __table_args__ = (
        Index("ix_chunk_embeddings_document_id", "document_id"),
        # Deleting a chunk looks its vectors up by chunk alone.
        Index("ix_chunk_embeddings_chunk_id", "chunk_id"),
        {"postgresql_partition_by": "LIST (model_id)"},
    )
