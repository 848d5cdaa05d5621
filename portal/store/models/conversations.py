"""Conversations, which documents they may use, and what their answers cite."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import (
    Base,
    ConversationRef,
    CreatedAt,
    DocumentRef,
    JsonObject,
    UserRef,
    UuidKey,
)


class UserDocumentDefaultRow(Base):
    """A user's own switch of a document; without a row the system's default, on, applies."""

    __tablename__ = "user_document_defaults"
    __table_args__ = (
        # Searches read the switch from the index, without a visit to the table.
        PrimaryKeyConstraint("user_id", "document_id", postgresql_include=["enabled"]),
    )

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    document_id: Mapped[DocumentRef] = mapped_column(primary_key=True, index=True)
    enabled: Mapped[bool]
    updated_at: Mapped[CreatedAt]


class ConversationRow(Base):
    __tablename__ = "conversations"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef]
    title: Mapped[str] = mapped_column(server_default=text("''"))
    # An AskScope (`portal.domain.documents.selection`); null means all documents.
    scope: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # Written by triggers: the transaction that last changed its switches or its scope.
    selection_version: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[CreatedAt]
    updated_at: Mapped[CreatedAt]
    pinned_at: Mapped[datetime | None]
    # Hidden since then, and erased after an hour.
    deleted_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_conversations_user_id_updated_at", "user_id", "updated_at"),
        Index(
            "ix_conversations_deleted_at",
            "deleted_at",
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
        Index("ix_conversations_untitled", "updated_at", postgresql_where=text("title = ''")),
    )


class ConversationReaderRow(Base):
    """A user with whom a conversation is shared."""

    __tablename__ = "conversation_readers"

    conversation_id: Mapped[ConversationRef] = mapped_column(primary_key=True)
    user_id: Mapped[UserRef] = mapped_column(primary_key=True, index=True)
    created_at: Mapped[CreatedAt]


class ConversationDocumentOverrideRow(Base):
    """A switch in one conversation, which overrides the user's own."""

    __tablename__ = "conversation_document_overrides"
    __table_args__ = (
        # Searches read the switch from the index, without a visit to the table.
        PrimaryKeyConstraint("conversation_id", "document_id", postgresql_include=["enabled"]),
    )

    conversation_id: Mapped[ConversationRef] = mapped_column(primary_key=True)
    document_id: Mapped[DocumentRef] = mapped_column(primary_key=True, index=True)
    enabled: Mapped[bool]
    updated_at: Mapped[CreatedAt]


class MessageRow(Base):
    __tablename__ = "messages"

    id: Mapped[UuidKey]
    conversation_id: Mapped[ConversationRef]
    role: Mapped[str]
    # The order: a question and its answer are written in one transaction, at the same `now()`.
    position: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    content: Mapped[str]
    status: Mapped[str] = mapped_column(server_default=text("'done'"))
    # The input of the answer: selection hash, models, chunks.
    retrieval: Mapped[JsonObject]
    # Narrows this question within the selection of its conversation; null does not narrow it.
    scope: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # For each sentence: [start, end, markers, is supported, likeness].
    support: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    feedback: Mapped[str | None]
    # Why an answer was not useful.
    feedback_reason: Mapped[str | None]
    created_at: Mapped[CreatedAt]
    # Updated while an answer is written. If it is old, the process has ended.
    updated_at: Mapped[CreatedAt]
    # Replaced by an edit or a retry: hidden, but kept for its feedback.
    superseded_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("role IN ('user', 'assistant', 'system', 'tool')", name="role_known"),
        CheckConstraint(
            "status IN ('streaming', 'done', 'stopped', 'abstained', 'unavailable')",
            name="status_known",
        ),
        CheckConstraint("feedback IN ('useful', 'not_useful')", name="feedback_known"),
        CheckConstraint(
            "feedback_reason IN ('wrong', 'incomplete', 'outdated', 'bad_source')",
            name="feedback_reason_known",
        ),
        # Reports read the answers of the last weeks.
        Index("ix_messages_created_at", "created_at", postgresql_where=text("role = 'assistant'")),
        Index("ix_messages_conversation_id_position", "conversation_id", "position"),
    )


class CitationRow(Base):
    """A quotation. Title and quote are copies, which stay when the document is gone."""

    __tablename__ = "citations"

    id: Mapped[UuidKey]
    message_id: Mapped[UUID] = mapped_column(ForeignKey("messages.id", ondelete="CASCADE"))
    marker: Mapped[int]
    document_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("documents.id", ondelete="SET NULL"), index=True
    )
    revision_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("document_revisions.id", ondelete="SET NULL"), index=True
    )
    # A newer ingestion may replace the chunk; the range in the revision stays valid.
    chunk_id: Mapped[UUID | None]
    title: Mapped[str]
    char_start: Mapped[int]
    char_end: Mapped[int]
    quote: Mapped[str]
    quote_sha256: Mapped[str]
    page: Mapped[int | None]
    heading: Mapped[str | None]
    scores: Mapped[JsonObject]
    confidence: Mapped[float]
    was_cited: Mapped[bool] = mapped_column(server_default=text("true"))
    created_at: Mapped[CreatedAt]

    __table_args__ = (UniqueConstraint("message_id", "marker"),)


class NotificationRow(Base):
    __tablename__ = "notifications"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef]
    kind: Mapped[str]
    document_id: Mapped[DocumentRef | None]
    # The ended job that it announces: a job that is retried ends more than once.
    job_id: Mapped[UUID | None] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    attempt: Mapped[int | None]
    # Shared by jobs that were unfinished at the same time: they are announced as one.
    batch_id: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())
    payload: Mapped[JsonObject]
    created_at: Mapped[CreatedAt]
    # When a page fetched it to show it; no other page gets it.
    delivered_at: Mapped[datetime | None]
    read_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("job_id", "attempt", "user_id"),
        Index("ix_notifications_user_id_created_at", "user_id", "created_at"),
        Index("ix_notifications_document_id", "document_id"),
        Index("ix_notifications_batch_id", "batch_id"),
        Index(
            "ix_notifications_undelivered",
            "user_id",
            "created_at",
            postgresql_where=text("delivered_at IS NULL"),
        ),
        Index("ix_notifications_unread", "user_id", postgresql_where=text("read_at IS NULL")),
    )


class DynamicConfigRow(Base):
    """A setting that administrators change while the portal serves."""

    __tablename__ = "dynamic_config"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[Any] = mapped_column(JSONB)
    updated_at: Mapped[CreatedAt]
    updated_by: Mapped[UUID | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))


class ChatSetupRow(Base):
    """The administrators' choice of the model that writes answers, in one row; null means that of
    the settings."""

    __tablename__ = "chat_setup"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    # Its key is encrypted (services/people/sealing.py).
    endpoint: Mapped[dict[str, Any] | None]
    writer: Mapped[dict[str, Any] | None]

    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)


class EvaluationQuestionRow(Base):
    """A question with which administrators measure answers. Deleted with its answer."""

    __tablename__ = "evaluation_questions"

    message_id: Mapped[UUID] = mapped_column(
        ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True
    )
    question: Mapped[str]
    # What an answer must contain; empty if the documents have no answer.
    gold: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    created_at: Mapped[CreatedAt]


class SelectionChangeRow(Base):
    """A document that changed in a version of the selection of `owner_id`, a user, a conversation
    or the collection of documents. Without `document_id` any may have. Written by triggers."""

    __tablename__ = "selection_changes"

    owner_id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    version_before: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int] = mapped_column(BigInteger)
    document_id: Mapped[UUID | None]
    chunk_count: Mapped[int]


class IdempotencyKeyRow(Base):
    """An upload request and its response, so that a repeat gets the same response."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_sha256: Mapped[str]
    response: Mapped[dict[str, Any] | None]
    created_at: Mapped[CreatedAt]


class Bm25IndexStateRow(Base):
    """The start of the server that a BM25 index was last rebuilt for."""

    __tablename__ = "bm25_index_state"

    index_name: Mapped[str] = mapped_column(primary_key=True)
    server_started_at: Mapped[datetime | None]
    rebuilt_at: Mapped[datetime | None]
    row_count: Mapped[int | None]
    state: Mapped[str] = mapped_column(server_default=text("'unknown'"))
