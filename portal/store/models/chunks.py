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
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, CreatedAt, DocumentRef, JsonObject, UuidKey

_WEIGHTED_TERMS = " || ".join(
    f"setweight(to_tsvector('simple'::regconfig, split_part(terms, chr(10), {part})), '{label}')"
    for part, label in enumerate("DCBA", 1)
)


class DocumentChunkRow(Base):
    """A chunk. It is searchable when its document's `current_job_id` is its job."""

    __tablename__ = "document_chunks"

    id: Mapped[UuidKey]
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    document_id: Mapped[DocumentRef]
    collection_id: Mapped[UUID] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    external_id: Mapped[str | None]
    chunk_index: Mapped[int]
    content: Mapped[str]
    # Analysed terms, joined by spaces, which both keyword backends index with `simple`. One line
    # each for content, caption, heading and title, with the weights D to A in the tsvector.
    terms: Mapped[str] = mapped_column(server_default=text("''"))
    terms_vector: Mapped[Any] = mapped_column(TSVECTOR, Computed(_WEIGHTED_TERMS, persisted=True))
    analyser_version: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    language: Mapped[str] = mapped_column(server_default=text("'other'"))
    page: Mapped[int | None]
    heading: Mapped[str | None]
    # Caption and header of the table whose rows it begins with, one per line.
    context: Mapped[str | None]
    # As in document_revisions, counted from the beginning of `content`.
    blocks: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    # Offset in the text of its job's revision; None when a program added it.
    char_start: Mapped[int | None]
    char_end: Mapped[int | None]
    # "metadata" is taken on declarative classes; the column keeps the contract's name.
    attributes: Mapped[JsonObject] = mapped_column("metadata")
    created_at: Mapped[CreatedAt]

    __table_args__ = (
        UniqueConstraint("job_id", "chunk_index"),
        CheckConstraint("chunk_index >= 0", name="chunk_index_positive"),
        CheckConstraint("char_start >= 0 AND char_end >= char_start", name="char_range_ordered"),
        CheckConstraint("num_nulls(char_start, char_end) <> 1", name="char_range_whole"),
        Index("ix_document_chunks_document_id", "document_id"),
        Index(
            "uq_document_chunks_collection_id_external_id",
            "collection_id",
            "external_id",
            unique=True,
            postgresql_where=text("external_id IS NOT NULL"),
        ),
        Index("ix_document_chunks_terms_vector", "terms_vector", postgresql_using="gin"),
        Index("ix_document_chunks_content", "content", postgresql_using="hash"),
        Index(
            "ix_document_chunks_metadata",
            "metadata",
            postgresql_using="gin",
            postgresql_ops={"metadata": "jsonb_path_ops"},
        ),
        Index("ix_document_chunks_created_at", "created_at", postgresql_using="brin"),
        Index("ix_document_chunks_analyser_version", "analyser_version"),
    )


class SharedChunkRow(Base):
    """The terms of a chunk of a shared document. Triggers fill the table; its keyword
    index weighs words without those of private documents. `terms` is None for a moment after
    many chunks were shared at once."""

    __tablename__ = "shared_chunks"
    __table_args__ = (
        Index("ix_shared_chunks_without_words", "chunk_id", postgresql_where=text("terms IS NULL")),
    )

    chunk_id: Mapped[UUID] = mapped_column(
        ForeignKey("document_chunks.id", ondelete="CASCADE"), primary_key=True
    )
    job_id: Mapped[UUID]
    document_id: Mapped[UUID] = mapped_column(index=True)
    terms: Mapped[str | None]


class VocabularyRow(Base):
    """A word that some chunk has or had, folded and as it was first written, with the term
    (or several, separated by spaces) that finds it and the keys that its misspellings share
    (portal.text.terms.spelling)."""

    __tablename__ = "vocabulary"

    word: Mapped[str] = mapped_column(primary_key=True)
    surface: Mapped[str]
    term: Mapped[str]
    keys: Mapped[list[str]]

    __table_args__ = (Index("ix_vocabulary_keys", "keys", postgresql_using="gin"),)


class EmbeddingModelRow(Base):
    """A model whose vectors are stored; each has its own partition and index."""

    __tablename__ = "embedding_models"

    id: Mapped[int] = mapped_column(Identity(), primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    provider: Mapped[str]
    dimensions: Mapped[int]
    # What the provider needs to load it again, such as a directory; never a secret.
    options: Mapped[JsonObject]
    # The definition of the partition's index: searches order by the same expression.
    index_method: Mapped[str] = mapped_column(server_default=text("'hnsw'"))
    vector_type: Mapped[str] = mapped_column(server_default=text("'halfvec'"))
    # The name of the functions of `language_axis` in the index's expression.
    index_axis: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default=text("'building'"))
    # Whether every chunk is known to have a vector; otherwise that has to be counted.
    is_complete: Mapped[bool] = mapped_column(server_default=text("false"))
    calibration: Mapped[dict[str, Any] | None]
    created_at: Mapped[CreatedAt]
    activated_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    # Progress of the build.
    stage: Mapped[str | None]
    done_count: Mapped[int] = mapped_column(server_default=text("0"))
    total_count: Mapped[int] = mapped_column(server_default=text("0"))
    error: Mapped[dict[str, Any] | None]
    noted_at: Mapped[datetime | None]
    # The last comparison with the model that was active then.
    comparison: Mapped[dict[str, Any] | None]

    __table_args__ = (
        CheckConstraint("dimensions BETWEEN 1 AND 16000", name="dimensions_range"),
        CheckConstraint(
            "status IN ('building', 'ready', 'active', 'retired')", name="status_known"
        ),
        CheckConstraint("index_method IN ('hnsw', 'ivfflat')", name="index_method_known"),
        CheckConstraint("vector_type IN ('halfvec', 'vector', 'bit')", name="vector_type_known"),
        # The name is interpolated into SQL.
        CheckConstraint("index_axis ~ '^m[0-9]+_[0-9a-f]{12}$'", name="index_axis_plain"),
        CheckConstraint(
            "stage IN ('queued', 'embedding', 'indexing', 'comparing', 'failed')",
            name="stage_known",
        ),
    )


class ChunkEmbeddingRow(Base):
    """The vector of a chunk by a model. Document and job are repeated here, so that the vector
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
        # A few documents out of many are compared one by one, found by their job.
        Index("ix_chunk_embeddings_job_id", "job_id"),
        # Deleting a chunk looks its vectors up by chunk alone.
        Index("ix_chunk_embeddings_chunk_id", "chunk_id"),
        {"postgresql_partition_by": "LIST (model_id)"},
    )
