"""Messages: questions, and answers during and after writing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, case, exists, false, func, select, update
from sqlalchemy.orm import Session

from portal.domain.answering import SentenceSupport
from portal.domain.conversations import (
    Feedback,
    FeedbackReason,
    Message,
    MessageStatus,
    Replay,
    Role,
)
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.errors import NotFound, existing
from portal.store.answers import citations
from portal.store.answers.conversations import of_user
from portal.store.answers.readers import shown_to
from portal.store.documents.scopes import name_scope
from portal.store.models import ConversationRow, MessageRow, UserRow

_STREAMING = MessageStatus.STREAMING.value


def _status(stale_after_s: float) -> Any:
    """Return the status; an unfinished answer whose writer is gone counts as stopped."""
    oldest = func.clock_timestamp() - timedelta(seconds=stale_after_s)
    is_stale = (MessageRow.status == _STREAMING) & (MessageRow.updated_at < oldest)
    return case((is_stale, MessageStatus.STOPPED.value), else_=MessageRow.status)


def _messages(of: ColumnElement[bool], stale_after_s: float) -> Select[Any]:
    return (
        select(MessageRow, _status(stale_after_s))
        .join(ConversationRow, ConversationRow.id == MessageRow.conversation_id)
        .where(of)
    )


def list_messages(
    session: Session, user: User, conversation_id: UUID, *, stale_after_s: float,
    is_shared: bool = False,
) -> tuple[Message, ...]:  # fmt: skip
    """Return the current messages, in order, of a user's own conversation, or of one that another
    user shares with them."""
    of = shown_to(user.id) if is_shared else of_user(user.id)
    current = _messages(of, stale_after_s).where(
        MessageRow.conversation_id == conversation_id, MessageRow.superseded_at.is_(None)
    )
    rows = session.execute(current.order_by(MessageRow.position)).all()
    return _to_messages(session, user, rows)


def get_message(session: Session, user: User, message_id: UUID, *, stale_after_s: float) -> Message:
    """Return one of the user's own messages, even if it has been replaced. Raises NotFound."""
    statement = _messages(of_user(user.id), stale_after_s).where(MessageRow.id == message_id)
    rows = session.execute(statement).all()
    if not rows:
        raise NotFound
    return _to_messages(session, user, rows)[0]


def _to_messages(session: Session, user: User, rows: Sequence[Any]) -> tuple[Message, ...]:
    cited = citations.of_messages(session, user, [row.id for row, _ in rows])
    return tuple(
        Message(
            id=row.id,
            conversation_id=row.conversation_id,
            role=Role(row.role),
            content=row.content,
            status=MessageStatus(status),
            created_at=row.created_at,
            citations=cited.get(row.id, ()),
            support=tuple(map(SentenceSupport.from_json, row.support)),
            replay=_to_replay(row.retrieval),
            scope=name_scope(session, user, AskScope.from_json(row.scope)) if row.scope else None,
            feedback=Feedback(row.feedback) if row.feedback else None,
            feedback_reason=FeedbackReason(row.feedback_reason) if row.feedback_reason else None,
        )
        for row, status in rows
    )


def _to_replay(stored: dict[str, Any]) -> Replay | None:
    if not stored:
        return None
    lists = {name: tuple(stored[name]) for name in ("further_queries", "degraded")}
    return Replay(**(stored | lists))


def find_shown(session: Session, conversation_id: UUID, message_id: UUID) -> MessageRow:
    """Return a message that is shown in a conversation. Raises NotFound."""
    row = MessageRow
    is_here = (row.conversation_id == conversation_id) & row.superseded_at.is_(None)
    return existing(session.scalar(select(row).where(row.id == message_id, is_here)))


def question_of(session: Session, answer: MessageRow) -> MessageRow:
    """Return the question that an answer belongs to. Raises NotFound."""
    row = MessageRow
    before = select(row).where(
        row.conversation_id == answer.conversation_id,
        row.superseded_at.is_(None),
        row.role == Role.USER.value,
        row.position < answer.position,
    )
    return existing(session.scalar(before.order_by(row.position.desc()).limit(1)))


def supersede_messages(session: Session, conversation_id: UUID, *, since: int | None) -> None:
    """Stop unfinished answers in this conversation, because the reader has moved on, and hide the
    messages from position `since` on."""
    shown = (MessageRow.conversation_id == conversation_id) & MessageRow.superseded_at.is_(None)
    replaced = MessageRow.position >= since if since is not None else false()
    # Lock all at once: a second query could need a message that sorts before those already locked.
    held = _hold(session, shown & (replaced | (MessageRow.status == _STREAMING)))
    _stop(session, held)
    session.execute(
        update(MessageRow).where(MessageRow.id.in_(held), replaced).values(superseded_at=func.now())
    )


def has_any(session: Session, conversation_id: UUID) -> bool:
    """Return whether a conversation has messages, shown or replaced."""
    any_message = exists().where(MessageRow.conversation_id == conversation_id)
    return bool(session.scalar(select(any_message)))


def hold_all(session: Session, conversation_id: UUID) -> None:
    """Lock a conversation's messages before they are deleted with it."""
    _hold(session, MessageRow.conversation_id == conversation_id)


def _hold(session: Session, which: ColumnElement[bool]) -> list[UUID]:
    """Lock messages until the transaction ends, in the order of their ids."""
    # A purge locks them in the same order; any other could deadlock.
    statement = select(MessageRow.id).where(which).order_by(MessageRow.id)
    return list(session.scalars(statement.with_for_update(key_share=True)))


def add_message(
    session: Session,
    conversation_id: UUID,
    message_id: UUID,
    *,
    role: Role,
    content: str,
    status: MessageStatus,
    replay: Replay | None = None,
    scope: AskScope | None = None,
) -> MessageRow:
    row = MessageRow(
        id=message_id,
        conversation_id=conversation_id,
        role=role.value,
        content=content,
        status=status.value,
        retrieval=asdict(replay) if replay else {},
        scope=scope.as_json() if scope else None,
    )
    session.add(row)
    session.flush()
    return row


def keep_alive(session: Session, message_id: UUID, content: str) -> bool:
    """Store the text so far; return whether to continue, which is not the case when the answer was
    stopped, replaced, or deleted with its conversation, or when the user was disabled."""
    is_of_enabled_user = exists().where(
        ConversationRow.id == MessageRow.conversation_id,
        UserRow.id == ConversationRow.user_id,
        UserRow.disabled_at.is_(None),
    )
    kept = session.scalar(
        update(MessageRow)
        .filter_by(id=message_id, status=_STREAMING)
        .where(is_of_enabled_user)
        .values(content=content, updated_at=func.now())
        .returning(MessageRow.id)
    )
    return kept is not None


def lock_message(session: Session, message_id: UUID) -> MessageRow | None:
    """Lock the row until the transaction ends."""
    return session.scalar(
        select(MessageRow).where(MessageRow.id == message_id).with_for_update(key_share=True)
    )


def rewrite(
    session: Session, message_id: UUID, *, content: str, support: Sequence[SentenceSupport]
) -> None:
    """Replace the text of an answer."""
    session.execute(
        update(MessageRow)
        .where(MessageRow.id == message_id)
        .values(content=content, support=[one.as_json() for one in support])
    )


def stop(session: Session, message_id: UUID) -> None:
    """Mark an unfinished answer as stopped, so that its writer stops."""
    _stop(session, [message_id])


def _stop(session: Session, message_ids: Sequence[UUID]) -> None:
    session.execute(
        update(MessageRow)
        .where(MessageRow.id.in_(message_ids), MessageRow.status == _STREAMING)
        .values(status=MessageStatus.STOPPED.value, updated_at=func.now())
    )


def set_feedback(
    session: Session, message_id: UUID, feedback: Feedback | None, reason: FeedbackReason | None
) -> None:
    session.execute(
        update(MessageRow)
        .where(MessageRow.id == message_id)
        .values(
            feedback=feedback.value if feedback else None,
            feedback_reason=reason.value if reason else None,
        )
    )
