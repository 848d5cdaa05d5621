"""Readers of shared conversations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.conversations import Reader, SharedConversation
from portal.store.models import ConversationReaderRow, ConversationRow, UserRow


def shown_to(user_id: UUID) -> ColumnElement[bool]:
    """Return the condition that a conversation is shared with a user and was not deleted."""
    reader = ConversationReaderRow
    is_reader = exists().where(
        reader.conversation_id == ConversationRow.id, reader.user_id == user_id
    )
    return is_reader & ConversationRow.deleted_at.is_(None)


def list_readers(session: Session, conversation_id: UUID) -> tuple[Reader, ...]:
    """Return the users with whom a conversation is shared, by name."""
    reader = ConversationReaderRow
    rows = session.execute(
        select(UserRow.id, UserRow.name)
        .join(reader, reader.user_id == UserRow.id)
        .where(reader.conversation_id == conversation_id)
        .order_by(func.lower(UserRow.name), UserRow.id)
    )
    return tuple(Reader(*row) for row in rows)


def add_reader(session: Session, conversation_id: UUID, user_id: UUID) -> bool:
    """Add a reader; return whether they are new."""
    added = session.scalar(
        insert(ConversationReaderRow)
        .values(conversation_id=conversation_id, user_id=user_id)
        .on_conflict_do_nothing()
        .returning(ConversationReaderRow.user_id)
    )
    return added is not None


def remove_reader(session: Session, conversation_id: UUID, user_id: UUID) -> bool:
    """Remove a reader; return whether there was one."""
    reader = ConversationReaderRow
    removed = session.scalar(
        delete(reader)
        .where(reader.conversation_id == conversation_id, reader.user_id == user_id)
        .returning(reader.user_id)
    )
    return removed is not None


def _shared(user_id: UUID) -> Select[Any]:
    """Select the fields of SharedConversation, in order."""
    row = ConversationRow
    columns: tuple[Any, ...] = (row.id, row.title, UserRow.name)
    is_owner = UserRow.id == row.user_id
    return select(*columns).join(UserRow, is_owner).where(shown_to(user_id))


def find_shared(
    session: Session, user_id: UUID, conversation_id: UUID
) -> SharedConversation | None:
    """Return a conversation that another user shares with this one."""
    row = session.execute(
        _shared(user_id).where(ConversationRow.id == conversation_id)
    ).one_or_none()
    return SharedConversation(*row) if row else None


def list_shared(session: Session, user_id: UUID, *, limit: int) -> tuple[SharedConversation, ...]:
    """Return the conversations that others share with a user, latest first."""
    latest = _shared(user_id).order_by(ConversationRow.updated_at.desc(), ConversationRow.id)
    return tuple(SharedConversation(*row) for row in session.execute(latest.limit(limit)))
