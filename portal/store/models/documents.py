"""Documents: the original files, their immutable texts, and the jobs that read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import (
    Base,
    ConversationRef,
    CreatedAt,
    DocumentRef,
    FolderRef,
    JsonObject,
    UserRef,
    UuidKey,
)


class CollectionRow(Base):
    """A set of documents that share an embedding model; the portal's own is `portal`."""

    __tablename__ = "collections"

    id: Mapped[UuidKey]
    name: Mapped[str] = mapped_column(unique=True)
    embedding_model_id: Mapped[int | None] = mapped_column(
        ForeignKey("embedding_models.id", ondelete="RESTRICT")
    )
    distance: Mapped[str] = mapped_column(server_default=text("'cosine'"))
    # Written by a trigger: the transaction that last changed who sees which chunks.
    documents_version: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # As above: the transaction that last changed chunks or vectors that a search reads.
    corpus_version: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    attributes: Mapped[JsonObject] = mapped_column("metadata")
    created_at: Mapped[CreatedAt]

    __table_args__ = (CheckConstraint("distance IN ('cosine', 'l2', 'ip')", name="distance_known"),)


class StoredFileRow(Base):
    """An uploaded file. Stored in the database, so that backups include it and all machines see
    it."""

    __tablename__ = "stored_files"

    id: Mapped[UuidKey]
    sha256: Mapped[str] = mapped_column(index=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    # Null for the oldest files, which have the name of their document.
    file_name: Mapped[str | None]
    media_type: Mapped[str | None]
    uploaded_by: Mapped[UUID | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    created_at: Mapped[CreatedAt] = mapped_column(index=True)


class StoredFilePartRow(Base):
    """One MiB of an original file."""

    __tablename__ = "stored_file_parts"

    file_id: Mapped[UUID] = mapped_column(
        ForeignKey("stored_files.id", ondelete="CASCADE"), primary_key=True
    )
    part_index: Mapped[int] = mapped_column(primary_key=True)
    data: Mapped[bytes]


class FolderRow(Base):
    """A place for documents, visible to all if shared, else to its owner or its members."""

    __tablename__ = "folders"

    id: Mapped[UuidKey]
    parent_id: Mapped[UUID | None] = mapped_column(ForeignKey("folders.id"), index=True)
    owner_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("users.id", ondelete="SET NULL"), index=True
    )
    name: Mapped[str]
    name_order: Mapped[str | None] = mapped_column(Computed("natural_order(name)", persisted=True))
    description: Mapped[str] = mapped_column(server_default=text("''"))
    visibility: Mapped[str] = mapped_column(server_default=text("'shared'"))
    # Written by triggers: the nearest folder, itself or above, that is open to members only.
    gate_id: Mapped[UUID | None]
    created_at: Mapped[CreatedAt]

    __table_args__ = (
        CheckConstraint("visibility IN ('shared', 'private', 'members')", name="visibility_known"),
        Index("ix_folders_gate_id", "gate_id", postgresql_where=text("gate_id IS NOT NULL")),
    )


class FolderMemberRow(Base):
    """A user or a group that may see a folder, with what they may do there."""

    __tablename__ = "folder_members"

    folder_id: Mapped[FolderRef] = mapped_column(primary_key=True)
    member_id: Mapped[UUID] = mapped_column(
        Computed("COALESCE(user_id, group_id)", persisted=True), primary_key=True
    )
    user_id: Mapped[UserRef | None] = mapped_column(index=True)
    group_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), index=True
    )
    role: Mapped[str]

    __table_args__ = (
        CheckConstraint("num_nonnulls(user_id, group_id) = 1", name="one_member"),
        CheckConstraint("role IN ('reader', 'contributor', 'keeper')", name="role_known"),
    )


class FolderSourceRow(Base):
    """The source that a folder is synchronised with."""

    __tablename__ = "folder_sources"

    folder_id: Mapped[FolderRef] = mapped_column(primary_key=True)
    owner_id: Mapped[UserRef] = mapped_column(index=True)
    kind: Mapped[str]
    address: Mapped[str]
    every_minutes: Mapped[int]
    due_at: Mapped[datetime] = mapped_column(index=True)
    last_run_at: Mapped[datetime | None]
    last_run: Mapped[dict[str, Any] | None]
    created_at: Mapped[CreatedAt]


class SourceItemRow(Base):
    """A file of a source, as the last run found it."""

    __tablename__ = "source_items"

    folder_id: Mapped[UUID] = mapped_column(
        ForeignKey("folder_sources.folder_id", ondelete="CASCADE"), primary_key=True
    )
    path: Mapped[str] = mapped_column(primary_key=True)
    stamp: Mapped[str]
    document_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("documents.id", ondelete="SET NULL"), index=True
    )


class SourceRunRow(Base):
    """A run of a source that changed something."""

    __tablename__ = "source_runs"

    folder_id: Mapped[UUID] = mapped_column(
        ForeignKey("folder_sources.folder_id", ondelete="CASCADE"), primary_key=True
    )
    ran_at: Mapped[datetime] = mapped_column(primary_key=True)
    outcome: Mapped[dict[str, Any]]


class SourceHostRow(Base):
    """A host that sources are read from, and when the next request may be sent."""

    __tablename__ = "source_hosts"

    host: Mapped[str] = mapped_column(primary_key=True)
    free_at: Mapped[datetime]


class FolderSwitchRow(Base):
    """A switch of a folder and everything below it, for a user or in one conversation."""

    __tablename__ = "folder_switches"

    owner_id: Mapped[UUID] = mapped_column(
        Computed("COALESCE(user_id, conversation_id)", persisted=True), primary_key=True
    )
    folder_id: Mapped[FolderRef] = mapped_column(primary_key=True, index=True)
    user_id: Mapped[UserRef | None] = mapped_column(index=True)
    conversation_id: Mapped[ConversationRef | None] = mapped_column(index=True)
    enabled: Mapped[bool]

    __table_args__ = (
        CheckConstraint("num_nonnulls(user_id, conversation_id) = 1", name="one_owner"),
    )


class FolderStateRow(Base):
    """The nearest switch at or above a folder, written by triggers. `source_id` is the folder with
    that switch. The owner is a user or a conversation."""

    __tablename__ = "folder_states"
    __table_args__ = (
        # Searches read the state from the index, without a visit to the table.
        PrimaryKeyConstraint("owner_id", "folder_id", postgresql_include=["enabled"]),
    )

    owner_id: Mapped[UUID] = mapped_column(primary_key=True)
    folder_id: Mapped[FolderRef] = mapped_column(primary_key=True, index=True)
    enabled: Mapped[bool]
    source_id: Mapped[UUID]


class DocumentRow(Base):
    __tablename__ = "documents"

    id: Mapped[UuidKey]
    collection_id: Mapped[UUID] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"))
    owner_id: Mapped[UUID | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    folder_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("folders.id", ondelete="SET NULL"), index=True
    )
    # Written by triggers: the gate of the folder.
    gate_id: Mapped[UUID | None]
    title: Mapped[str]
    # The sort key of the title, with numbers padded with zeros.
    title_order: Mapped[str | None] = mapped_column(
        Computed("natural_order(title)", persisted=True), deferred=True
    )
    file_name: Mapped[str]
    media_type: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str]
    domain: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    visibility: Mapped[str] = mapped_column(server_default=text("'shared'"))
    status: Mapped[str] = mapped_column(server_default=text("'queued'"))
    error: Mapped[dict[str, Any] | None]
    # The ingestion whose chunks are searchable. Publishing new text is this one update.
    current_job_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("jobs.id", ondelete="SET NULL", use_alter=True)
    )
    # Written by a trigger with current_job_id. The plans of searches depend on it.
    chunk_count: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]
    deleted_at: Mapped[datetime | None]
    purged_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("visibility IN ('shared', 'private')", name="visibility_known"),
        CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'failed')", name="status_known"
        ),
        CheckConstraint("purged_at IS NULL OR deleted_at IS NOT NULL", name="purged_is_deleted"),
        # Includes the columns that decide who sees a document, to count lists from the index.
        Index(
            "ix_documents_listed",
            *("collection_id", "created_at", "id"),
            postgresql_include=["visibility", "gate_id", "owner_id"],
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index(
            "ix_documents_listed_types",
            *("collection_id", "media_type"),
            postgresql_include=["visibility", "gate_id", "owner_id"],
            postgresql_where=text("deleted_at IS NULL"),
        ),
        Index("ix_documents_collection_id_title_order", "collection_id", "title_order"),
        Index("ix_documents_collection_id_size", "collection_id", "size_bytes"),
        Index("ix_documents_gate_id", "gate_id", postgresql_where=text("gate_id IS NOT NULL")),
        Index(
            "ix_documents_limited",
            "collection_id",
            postgresql_where=text("visibility = 'private' OR gate_id IS NOT NULL"),
        ),
        Index("ix_documents_tags", "tags", postgresql_using="gin"),
        Index("ix_documents_tagged", "collection_id", postgresql_where=text("tags <> '{}'")),
        Index("ix_documents_owner_id_sha256", "owner_id", "sha256"),
        Index("ix_documents_current_job_id", "current_job_id"),
    )


class BulkChangeRow(Base):
    """A change of many documents that can be undone: the new value, and the old one of each
    document."""

    __tablename__ = "bulk_changes"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    action: Mapped[str]
    value: Mapped[dict[str, Any]]
    before: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]


class BulkReportRow(Base):
    """The result of a bulk change, with the documents that it skipped."""

    __tablename__ = "bulk_reports"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    change_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("bulk_changes.id", ondelete="SET NULL"), index=True
    )
    action: Mapped[str]
    outcome: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]


class DocumentRevisionRow(Base):
    """The text of one file. It never changes, so that citations stay valid."""

    __tablename__ = "document_revisions"

    id: Mapped[UuidKey]
    document_id: Mapped[DocumentRef]
    revision_number: Mapped[int]
    file_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("stored_files.id", ondelete="SET NULL"), index=True
    )
    # The column keeps the contract's name; the attribute must not hide SQLAlchemy's text().
    body: Mapped[str] = mapped_column("text", Text)
    sha256: Mapped[str]
    extractor: Mapped[str]
    encoding: Mapped[str | None]
    character_count: Mapped[int]
    pages: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    headings: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    # Tables, list items and so on, as `Block.as_json` of `portal.domain.documents.structure`
    # writes them.
    blocks: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    # The reader that made the text. Files read by older ones are read again in the background.
    reader_version: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    warnings: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    # Compared with the previous searchable text; null for the first, and for very long texts.
    characters_added: Mapped[int | None]
    characters_removed: Mapped[int | None]
    created_at: Mapped[CreatedAt]

    __table_args__ = (UniqueConstraint("document_id", "revision_number"),)


class JobRow(Base):
    """One ingestion of one file of a document."""

    __tablename__ = "jobs"

    id: Mapped[UuidKey]
    document_id: Mapped[DocumentRef] = mapped_column(index=True)
    file_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("stored_files.id", ondelete="SET NULL"), index=True
    )
    revision_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("document_revisions.id", ondelete="SET NULL"), index=True
    )
    status: Mapped[str] = mapped_column(server_default=text("'queued'"))
    stage: Mapped[str | None]
    done_count: Mapped[int] = mapped_column(server_default=text("0"))
    total_count: Mapped[int] = mapped_column(server_default=text("0"))
    # The queued job with the lowest turn is next (portal.store.documents.ingestion.queue).
    turn: Mapped[int] = mapped_column(server_default=text("0"))
    # Also identifies the attempt: a worker that was taken for dead has a lower number.
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    # Attempts that ended with a temporary error.
    failed_attempts: Mapped[int] = mapped_column(server_default=text("0"))
    # Consecutive attempts whose process died without progress.
    deaths: Mapped[int] = mapped_column(server_default=text("0"))
    error: Mapped[dict[str, Any] | None]
    config: Mapped[JsonObject]
    created_at: Mapped[CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    retry_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_jobs_created_at", "created_at", "id"),
        Index("ix_jobs_turn", "turn", postgresql_where=text("status IN ('queued', 'processing')")),
        CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'failed', 'cancelled')",
            name="status_known",
        ),
    )
