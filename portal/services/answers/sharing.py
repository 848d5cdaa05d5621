"""Conversations that their owners share with other users.

Readers see documents with their own rights, not with the owner's. An answer is shown whole or
withheld whole (docs/adr/0058-shared-conversations.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from portal.domain.answering import Outcome
from portal.domain.conversations import (
    Citation,
    Message,
    Reader,
    Role,
    SharedConversation,
    SharedMessage,
    SourceState,
    Withheld,
)
from portal.domain.people import User
from portal.errors import InvalidInput, NotFound, existing
from portal.services import Services, audit
from portal.services.answers.conversations import stale_after_s
from portal.services.answers.drafts import FAILED_PROVIDER, NAMES_DOCUMENTS
from portal.services.answers.writers import EXTRACTIVE
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people.accounts import normalise_name
from portal.store.answers import conversations as conversation_store
from portal.store.answers import messages as message_store
from portal.store.answers import readers as reader_store
from portal.store.documents import notifications as notification_store
from portal.store.people import accounts as account_store
from portal.store.session import Session

MAX_READERS = 100
_MAX_LISTED = 200


def list_readers(services: Services, user: User, conversation_id: UUID) -> tuple[Reader, ...]:
    """Return the users that the user's own conversation is shared with. Raises NotFound."""
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        return reader_store.list_readers(session, conversation_id)


def add_reader(services: Services, user: User, conversation_id: UUID, name: str) -> None:
    """Share a conversation with a user, who is notified. Raises NotFound, NoSuchAccount and
    InvalidInput."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        reader = account_store.get_user_by_name(session, normalise_name(name))
        if reader.id == user.id:
            raise InvalidInput("it is your own conversation")
        if len(reader_store.list_readers(session, conversation_id)) >= MAX_READERS:
            raise InvalidInput(
                "a conversation can be shared with at most %(max)s users", max=MAX_READERS
            )
        if reader_store.add_reader(session, conversation_id, reader.id):
            notification_store.add_shared(session, reader.id, conversation_id, owner=user.name)
        _record(session, user, conversation_id, AuditEvent.CONVERSATION_SHARED, reader.name)


def remove_reader(services: Services, user: User, conversation_id: UUID, reader_id: UUID) -> None:
    """Stop sharing a conversation with a reader. Raises NotFound, also if it was not shared with
    them."""
    with services.database.begin() as session:
        conversation_store.lock_own(session, conversation_id, user.id)
        names = {one.id: one.name for one in reader_store.list_readers(session, conversation_id)}
        if not reader_store.remove_reader(session, conversation_id, reader_id):
            raise NotFound
        name = names.get(reader_id, "")
        _record(session, user, conversation_id, AuditEvent.CONVERSATION_UNSHARED, name)


def leave(services: Services, user: User, conversation_id: UUID) -> None:
    """Remove a conversation of another user from this user's list. Raises NotFound."""
    with services.database.begin() as session:
        if not reader_store.remove_reader(session, conversation_id, user.id):
            raise NotFound
        _record(session, user, conversation_id, AuditEvent.CONVERSATION_UNSHARED, user.name)


def list_shared(services: Services, user: User) -> tuple[SharedConversation, ...]:
    """Return the conversations that others share with a user, latest first."""
    with services.database.begin() as session:
        return reader_store.list_shared(session, user.id, limit=_MAX_LISTED)


def require_shared(services: Services, user: User, conversation_id: UUID) -> None:
    """Raise NotFound for a conversation that no other user shares with this one."""
    with services.database.begin() as session:
        existing(reader_store.find_shared(session, user.id, conversation_id))


def read(
    services: Services, user: User, conversation_id: UUID
) -> tuple[SharedConversation, tuple[SharedMessage, ...]]:
    """Return a conversation that another user shares with this one. Raises NotFound."""
    with services.database.begin() as session:
        shared = existing(reader_store.find_shared(session, user.id, conversation_id))
        messages = message_store.list_messages(
            session, user, conversation_id, stale_after_s=stale_after_s(services), is_shared=True
        )
        return shared, tuple(_for_reader(messages))


def _for_reader(messages: Iterable[Message]) -> Iterator[SharedMessage]:
    """Yield messages; withhold answers that rest, or may rest, on what the reader may not see."""
    was_hidden = False
    for message in messages:
        if message.role is Role.USER:
            yield SharedMessage(message)
            continue
        hidden = list(filter(_is_hidden, message.citations))
        is_withheld = _may_reveal_hidden(message, was_hidden=was_hidden)
        # A language model reads earlier answers, and may repeat them.
        was_hidden = was_hidden or bool(hidden)
        visible = (one for one in message.citations if one not in hidden)
        shown = replace(
            message,
            content="" if is_withheld else message.content,
            support=() if is_withheld else message.support,
            citations=() if is_withheld else tuple(visible),
            # The search queries may repeat an earlier answer as well.
            replay=None,
        )
        yield SharedMessage(shown, _reason(hidden) if is_withheld else None)


def _reason(hidden: Sequence[Citation]) -> Withheld:
    """Return why an answer is withheld. Only the hidden sources that it cites count, if any."""
    of_answer = [one for one in hidden if one.was_cited] or hidden
    is_trashed = of_answer and all(one.state is SourceState.TRASHED for one in of_answer)
    return Withheld.TRASHED if is_trashed else Withheld.HIDDEN


def _may_reveal_hidden(message: Message, *, was_hidden: bool) -> bool:
    replay = message.replay
    if replay is None:
        return True
    # A model that failed may have chosen queries that show what it had read.
    if replay.chat_provider != EXTRACTIVE or FAILED_PROVIDER in replay.extra:
        return was_hidden or any(map(_is_hidden, message.citations))
    if replay.extra.get("outcome") == Outcome.QUOTED:
        # Each of its statements is a quotation with a marker.
        return any(one.was_cited and _is_hidden(one) for one in message.citations)
    if replay.extra.get("outcome") == Outcome.REPLY:
        # It may name any document that its owner may see.
        names_documents = replay.extra.get(NAMES_DOCUMENTS, not message.citations)
        return names_documents or any(map(_is_hidden, message.citations))
    return any(map(_is_hidden, message.citations))


def _is_hidden(citation: Citation) -> bool:
    """Return whether the reader may not see a source. An erased one is not hidden."""
    if citation.state is SourceState.TRASHED:
        return not citation.can_restore
    return citation.state is SourceState.GONE and citation.gone_at is None


def _record(
    session: Session, user: User, conversation_id: UUID, event: AuditEvent, reader: str
) -> None:
    # The title is not recorded, because it is a question.
    subject = Subject(SubjectKind.CONVERSATION, conversation_id)
    audit.record(session, event, user, subject, user=reader)
