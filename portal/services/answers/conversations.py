"""Conversations: create, find, rename, read and delete them, and rate answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.conversations import (
    MAX_TITLE_CHARACTERS,
    ConversationSummary,
    Feedback,
    FeedbackReason,
    Message,
    MessageStatus,
    Role,
)
from portal.domain.documents.selection import AskScope, NamedScope
from portal.domain.paging import ListPage
from portal.domain.people import User
from portal.errors import Conflict, InvalidInput, NotFound
from portal.services import Services
from portal.store.answers import branching
from portal.store.answers import conversations as conversation_store
from portal.store.answers import messages as message_store
from portal.store.documents import folders as folder_store
from portal.store.documents import scopes as scope_store
from portal.text.titles import check_title, one_line

# Added to the model's own timeout, because storing takes a moment too.
_SPARE_S = 30.0
_MAX_FOUND = 6
MAX_PINNED = 50
# How long the deletion of a conversation can be undone.
KEPT_FOR = timedelta(hours=1)
_UNUSED_FOR = timedelta(days=1)


def stale_after_s(services: Services) -> float:
    """Return after how many seconds without an update the process that writes an answer is presumed
    dead."""
    return services.settings.chat.timeout_s + _SPARE_S


def create(
    services: Services, user: User, title: str = "", *, scope: AskScope | None = None
) -> ConversationSummary:
    """Create a conversation. Without a title, it is named after its first question. With a scope,
    its questions are limited to that scope. Raises InvalidInput, NotFound."""
    if title := one_line(title):
        title = check_title(title, max_characters=MAX_TITLE_CHARACTERS)
    with services.database.begin() as session:
        if scope and scope.folders:
            folder_store.lock_tree(session)
        conversation_id = conversation_store.add_conversation(session, user.id, title, scope)
        if scope:
            scope_store.require_visible_scope(session, user, scope)
            scope_store.switch_on(session, conversation_id, scope)
        return conversation_store.get_summary(session, conversation_id, user.id)


def scope_of(services: Services, user: User, conversation_id: UUID) -> NamedScope | None:
    """Return the scope of a conversation, with names; None if it asks about everything. Raises
    NotFound."""
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        scope = conversation_store.get_scope(session, conversation_id)
        return scope_store.name_scope(session, user, scope) if scope else None


def name_scope(services: Services, user: User, scope: AskScope) -> NamedScope | None:
    """Return a scope with names; None if it is empty, which means everything. Raises NotFound."""
    with services.database.begin() as session:
        scope_store.require_visible_scope(session, user, scope)
        return scope_store.name_scope(session, user, scope) if scope else None


def find_for_scope(services: Services, user: User, words: str) -> NamedScope:
    """Return documents, folders and tags whose names contain the words: a few of each kind."""
    with services.database.read() as session:
        return scope_store.find_named(session, user, words, limit=_MAX_FOUND)


def list_conversations(
    services: Services, user: User, *, contains: str = "", pinned: bool | None = None,
    cursor: str | None = None, limit: int = 50,
) -> ListPage[ConversationSummary]:  # fmt: skip
    """Return a user's conversations, latest first. `contains` limits them to those with these words
    in the title or in a message, `pinned` to those that are or are not pinned. Raises
    MalformedRequest on a bad cursor."""
    with services.database.begin() as session:
        return conversation_store.list_conversations(
            session, user.id, contains=contains.strip(), pinned=pinned, cursor=cursor, limit=limit
        )


def get(services: Services, user: User, conversation_id: UUID) -> ConversationSummary:
    """Return a conversation of the user's own. Raises NotFound, also for another user's."""
    with services.database.begin() as session:
        return conversation_store.get_summary(session, conversation_id, user.id)


def rename(
    services: Services, user: User, conversation_id: UUID, title: str
) -> ConversationSummary:
    """Rename a conversation. Raises NotFound, InvalidInput."""
    title = check_title(title, max_characters=MAX_TITLE_CHARACTERS)
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id).title = title
        session.flush()
        return conversation_store.get_summary(session, conversation_id, user.id)


def delete(services: Services, user: User, conversation_id: UUID) -> None:
    """Delete a conversation with all its messages, citations and switches. It disappears at once
    for everything but `restore`, and is erased an hour later. Stops an unfinished answer. Raises
    NotFound."""
    with services.database.begin() as session:
        row = conversation_store.lock_own(session, conversation_id, user.id)
        message_store.supersede_messages(session, conversation_id, since=None)
        row.deleted_at = datetime.now(UTC)


def restore(services: Services, user: User, conversation_id: UUID) -> None:
    """Undo the deletion of a conversation, if it was deleted. Raises NotFound once it is erased."""
    with services.database.begin() as session:
        conversation_store.lock_own(
            session, conversation_id, user.id, also_deleted=True
        ).deleted_at = None


def erase_old(
    services: Services,
    *,
    now: datetime | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Erase conversations that were deleted over an hour ago, begun over a day ago and never used,
    or last used over `conversation_days` ago, one per transaction. Pinned ones are erased only
    after deletion. Safe in several workers at once."""
    now, days = now or datetime.now(UTC), services.settings.conversation_days
    while not should_stop():
        with services.database.begin() as session:
            conversation_id = conversation_store.lock_erasable(
                session,
                deleted_before=now - KEPT_FOR,
                unused_since=now - _UNUSED_FOR,
                silent_since=now - timedelta(days=days) if days else None,
            )
            if conversation_id is None:
                return
            message_store.hold_all(session, conversation_id)
            conversation_store.erase_conversation(session, conversation_id)


def discard(services: Services, user: User, conversation_id: UUID) -> None:
    """Erase a conversation in which nothing was asked. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        if not message_store.has_any(session, conversation_id):
            conversation_store.erase_conversation(session, conversation_id)


def pin(services: Services, user: User, conversation_id: UUID, *, pinned: bool) -> None:
    """Pin a conversation to the top of the list, or unpin it. Raises NotFound, and InvalidInput
    when too many are pinned."""
    with services.database.begin() as session:
        row = conversation_store.lock_own(session, conversation_id, user.id)
        if not pinned:
            row.pinned_at = None
        elif row.pinned_at is None:
            if conversation_store.count_pinned(session, user.id) >= MAX_PINNED:
                raise InvalidInput("at most %(max)s conversations can be pinned", max=MAX_PINNED)
            row.pinned_at = datetime.now(UTC)


def branch(services: Services, user: User, message_id: UUID) -> ConversationSummary:
    """Copy a conversation, up to an answer, into a new one. Raises NotFound, also for a question,
    and Conflict while the answer is being written."""
    message = get_message(services, user, message_id)
    if message.role is not Role.ASSISTANT:
        raise NotFound
    if message.status is MessageStatus.STREAMING:
        raise Conflict("the answer is still being written")
    with services.database.begin() as session:
        folder_store.lock_tree(session)
        conversation_store.lock_own(session, message.conversation_id, user.id)
        until = message_store.find_shown(session, message.conversation_id, message_id)
        copy_id = branching.copy_conversation(session, message.conversation_id, until=until)
        return conversation_store.get_summary(session, copy_id, user.id)


def messages(services: Services, user: User, conversation_id: UUID) -> tuple[Message, ...]:
    """Return the current messages of the conversation, in order. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        return message_store.list_messages(
            session, user, conversation_id, stale_after_s=stale_after_s(services)
        )


def get_message(services: Services, user: User, message_id: UUID) -> Message:
    """Return a message. Raises NotFound."""
    with services.database.begin() as session:
        return message_store.get_message(
            session, user, message_id, stale_after_s=stale_after_s(services)
        )


def question_of(services: Services, user: User, message: Message) -> str | None:
    """Return the question of an answer that is shown; None for any other message. Raises NotFound
    for another user's."""
    if message.role is not Role.ASSISTANT:
        return None
    with services.database.begin() as session:
        conversation_store.require_own(session, message.conversation_id, user.id)
        try:
            answer = message_store.find_shown(session, message.conversation_id, message.id)
            return message_store.question_of(session, answer).content
        except NotFound:
            return None


def set_feedback(
    services: Services, user: User, message_id: UUID, feedback: Feedback | None,
    reason: FeedbackReason | None = None,
) -> Message:  # fmt: skip
    """Record whether an answer was useful and, if not, why; None removes the rating. Raises
    NotFound, also for a question, and InvalidInput for a reason with any other rating."""
    if reason is not None and feedback is not Feedback.NOT_USEFUL:
        raise InvalidInput("only an answer that was not useful has a reason")
    with services.database.begin() as session:
        timeout_s = stale_after_s(services)
        message = message_store.get_message(session, user, message_id, stale_after_s=timeout_s)
        if message.role is not Role.ASSISTANT:
            raise NotFound
        message_store.set_feedback(session, message_id, feedback, reason)
        return message_store.get_message(session, user, message_id, stale_after_s=timeout_s)
