"""Conversations: ownership and lists."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from portal.domain.conversations import ConversationSummary
from portal.domain.documents.selection import AskScope
from portal.domain.paging import ListPage
from portal.errors import NotFound, existing
from portal.store.cursors import latest_first
from portal.store.models import ConversationRow, MessageRow


def of_user(user_id: UUID) -> ColumnElement[bool]:
    """Return the condition that a conversation is the user's and was not deleted."""
    return (ConversationRow.user_id == user_id) & ConversationRow.deleted_at.is_(None)


def belongs_to(session: Session, conversation_id: UUID, user_id: UUID) -> bool:
    own = exists().where(ConversationRow.id == conversation_id, of_user(user_id))
    return bool(session.scalar(select(own)))


def require_own(session: Session, conversation_id: UUID, user_id: UUID) -> None:
    """Raise NotFound for another user's conversation, as for one that does not exist."""
    if not belongs_to(session, conversation_id, user_id):
        raise NotFound


def lock_own(
    session: Session, conversation_id: UUID, user_id: UUID, *, also_deleted: bool = False
) -> ConversationRow:
    """Lock the row until the transaction ends, so that questions of one conversation are
    serialised. Raises NotFound."""
    row = ConversationRow
    own = row.user_id == user_id if also_deleted else of_user(user_id)
    locked = select(row).where(row.id == conversation_id, own).with_for_update(key_share=True)
    return existing(session.scalar(locked))


_MESSAGE_COUNT = (
    select(func.count())
    .select_from(MessageRow)
    .where(MessageRow.conversation_id == ConversationRow.id, MessageRow.superseded_at.is_(None))
    .correlate(ConversationRow)
    .scalar_subquery()
)


def _summaries(user_id: UUID) -> Select[Any]:
    """Select the fields of ConversationSummary, in order."""
    row = ConversationRow
    is_pinned = row.pinned_at.is_not(None)
    columns = (row.id, row.title, row.created_at, row.updated_at, _MESSAGE_COUNT, is_pinned)
    return select(*columns).where(of_user(user_id))


def add_conversation(
    session: Session, user_id: UUID, title: str, scope: AskScope | None = None
) -> UUID:
    row = ConversationRow(user_id=user_id, title=title, scope=scope.as_json() if scope else None)
    session.add(row)
    session.flush()
    return row.id


def get_scope(session: Session, conversation_id: UUID) -> AskScope:
    """Return the scope of a conversation; an empty one means all documents."""
    stored = select(ConversationRow.scope).where(ConversationRow.id == conversation_id)
    return AskScope.from_json(session.scalar(stored))


def get_summary(session: Session, conversation_id: UUID, user_id: UUID) -> ConversationSummary:
    """Return the summary of a conversation. Raises NotFound."""
    statement = _summaries(user_id).where(ConversationRow.id == conversation_id)
    return ConversationSummary(*existing(session.execute(statement).one_or_none()))


def list_conversations(
    session: Session, user_id: UUID, *, contains: str, pinned: bool | None, cursor: str | None,
    limit: int,
) -> ListPage[ConversationSummary]:  # fmt: skip
    """Return a user's conversations whose title or messages contain a text, latest first; `pinned`
    keeps only those that are pinned, or are not. Raises MalformedRequest on a bad cursor."""
    statement = _summaries(user_id)
    if pinned is not None:
        statement = statement.where(ConversationRow.pinned_at.is_not(None).is_(pinned))
    if contains:
        in_messages = exists().where(
            MessageRow.conversation_id == ConversationRow.id,
            MessageRow.superseded_at.is_(None),
            MessageRow.content.icontains(contains, autoescape=True),
        )
        in_title = ConversationRow.title.icontains(contains, autoescape=True)
        statement = statement.where(or_(in_title, in_messages))
    return latest_first(
        session,
        statement,
        ConversationRow.updated_at,
        ConversationRow.id,
        cursor=cursor,
        limit=limit,
        to_item=lambda row: ConversationSummary(*row),
        place=lambda one: (one.updated_at, one.id),
    )


def touch(session: Session, conversation_id: UUID) -> None:
    """Update the time of the last message, which moves the conversation to the top of lists."""
    session.execute(
        update(ConversationRow)
        .where(ConversationRow.id == conversation_id)
        .values(updated_at=func.clock_timestamp())
    )


def count_pinned(session: Session, user_id: UUID) -> int:
    pinned = select(func.count()).select_from(ConversationRow)
    pinned = pinned.where(of_user(user_id), ConversationRow.pinned_at.is_not(None))
    return session.scalar(pinned) or 0


def lock_erasable(
    session: Session,
    *,
    deleted_before: datetime,
    unused_since: datetime,
    silent_since: datetime | None,
) -> UUID | None:
    """Lock a conversation that was deleted, begun but never used, or last used before these times,
    and return its id. Pinned ones are kept until they are deleted."""
    row = ConversationRow
    # The first question gives a conversation its title.
    is_unused = and_(
        row.title == "",
        row.updated_at < unused_since,
        row.pinned_at.is_(None),
        ~exists().where(MessageRow.conversation_id == row.id),
    )
    reasons = [row.deleted_at < deleted_before, is_unused]
    if silent_since is not None:
        reasons.append(and_(row.updated_at < silent_since, row.pinned_at.is_(None)))
    erasable = select(row.id).where(or_(*reasons)).limit(1)
    return session.scalar(erasable.with_for_update(skip_locked=True, of=row))


def erase_conversation(session: Session, conversation_id: UUID) -> None:
    """Erase a conversation with all its switches, messages and citations."""
    session.execute(delete(ConversationRow).where(ConversationRow.id == conversation_id))
