"""Asking a question in a conversation, retrying it, and stopping an answer.

Errors are raised before anything is stored: `ask` searches, loads the enabled chunks, stores the
question with an empty answer, and only then returns the stream that writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from portal.answering.writing import prompt
from portal.answering.writing.prompt import Prompt
from portal.domain.conversations import MAX_MESSAGE_CHARACTERS, Message, MessageStatus, Replay, Role
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.errors import InvalidInput, NotFound
from portal.observability import tracing
from portal.services import Services
from portal.services.answers import conversations, writers
from portal.services.answers.drafts import AnswerDraft
from portal.services.answers.retrieving import Asked, Retrieved, ask_in, retrieve
from portal.services.answers.streaming import Answering, AnswerStream
from portal.store.answers import citations as citation_store
from portal.store.answers import conversations as conversation_store
from portal.store.answers import messages as message_store
from portal.store.answers.sources import HISTORY_RESTS_ON
from portal.store.documents import scopes as scope_store
from portal.store.models import MessageRow
from portal.store.session import Session
from portal.text.characters.scripts import has_visible_text
from portal.text.titles import one_line

_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class _Target:
    """The position of a question: it replaces the messages from `since` on, or is appended.
    `existing` is the question itself if only its answer is replaced, and `before` is its position.
    A `scope` narrows the search."""

    conversation_id: UUID
    since: int | None = None
    before: int | None = None
    existing: UUID | None = None
    scope: AskScope | None = None


def ask(
    services: Services, user: User, conversation_id: UUID, question: str, *,
    replace_from: UUID | None = None, scope: AskScope | None = None,
) -> AnswerStream:  # fmt: skip
    """Ask at the end of a conversation, or in place of an earlier question and everything after it.

    A scope narrows only this question, to the part of the scope that is switched on in the
    conversation. An unfinished answer in this conversation is stopped. Raises NotFound (also if the
    user may not see a part of the scope), InvalidInput, TooManyAnswers, TooManyOwnAnswers, and the
    errors of a search; nothing is stored then.
    """
    question = question.strip()
    if not has_visible_text(question) or len(question) > MAX_MESSAGE_CHARACTERS:
        raise InvalidInput(
            "a question must have 1 to %(max)s characters", max=MAX_MESSAGE_CHARACTERS
        )
    with services.database.begin() as session:
        conversation_store.require_own(session, conversation_id, user.id)
        if scope:
            scope_store.require_visible_scope(session, user, scope)
        target = _Target(conversation_id, scope=scope)
        if replace_from is not None:
            replaced = message_store.find_shown(session, conversation_id, replace_from)
            if replaced.role != Role.USER:
                raise NotFound
            target = replace(target, since=replaced.position, before=replaced.position)
    return _begin(services, user, target, question)


def retry(services: Services, user: User, message_id: UUID) -> AnswerStream:
    """Answer a question again, in place of this answer and everything after it. Raises the errors
    of `ask`."""
    with services.database.begin() as session:
        message = message_store.get_message(session, user, message_id, stale_after_s=0)
        answer = message_store.find_shown(session, message.conversation_id, message_id)
        if answer.role != Role.ASSISTANT:
            raise NotFound
        question = message_store.question_of(session, answer)
        target = _Target(
            message.conversation_id,
            since=answer.position,
            before=question.position,
            existing=question.id,
            scope=AskScope.from_json(question.scope),
        )
    return _begin(services, user, target, question.content)


def stop(services: Services, user: User, message_id: UUID) -> Message:
    """Stop an unfinished answer, whichever process writes it. It ends within about a second and
    keeps its text so far. Raises NotFound."""
    with services.database.begin() as session:
        stale_after_s = conversations.stale_after_s(services)
        message_store.get_message(session, user, message_id, stale_after_s=stale_after_s)
        message_store.stop(session, message_id)
        return message_store.get_message(session, user, message_id, stale_after_s=stale_after_s)


def _begin(services: Services, user: User, target: _Target, question: str) -> AnswerStream:
    slot = services.answer_slots.take(user.id, services.settings.chat)
    try:
        services = writers.with_current(services)
        asked = ask_in(
            services, user, target.conversation_id, question, target.before, scope=target.scope
        )
        with tracing.span("answer.retrieve"):
            retrieved = retrieve(services, asked)
        if retrieved.reply is not None:
            services = writers.without_model(services)
        answering = _store(services, asked, target, retrieved)
    except BaseException:
        slot.release()
        raise
    return AnswerStream(services, answering, slot)


def _store(services: Services, asked: Asked, target: _Target, retrieved: Retrieved) -> Answering:
    """Store the question and its still empty answer, with the chunks that it is written from."""
    built = _prompt(services, asked, retrieved)
    replay = _replay(services, retrieved, built.tokens)
    draft = AnswerDraft(
        services, asked.user, uuid4(),
        replay=replay, found=retrieved.sources, shown=built.sources,
    )  # fmt: skip
    with services.database.begin() as session:
        alive = citation_store.hold_documents(session, draft.cited)
        conversation = conversation_store.lock_own(session, asked.conversation_id, asked.user.id)
        message_store.supersede_messages(session, asked.conversation_id, since=target.since)
        question = _store_question(session, asked, target)
        message_store.add_message(
            session, asked.conversation_id, draft.message_id,
            role=Role.ASSISTANT, content="", status=MessageStatus.STREAMING, replay=replay,
        )  # fmt: skip
        citation_store.replace_citations(session, draft.message_id, draft.cited, alive)
        if not conversation.title:
            conversation.title = title_from(asked.question)
        conversation_store.touch(session, asked.conversation_id)
        # A question is never stale.
        stored = message_store.get_message(session, asked.user, question.id, stale_after_s=0)
    return Answering(asked, retrieved, built, stored, draft)


def _prompt(services: Services, asked: Asked, retrieved: Retrieved) -> Prompt:
    # Without a prompt there is no token budget, so no chunk is left out.
    if services.chat.only_quotes or retrieved.is_outline or retrieved.reply is not None:
        return Prompt("", retrieved.sources, 0)
    return prompt.build(
        retrieved.sources,
        language=asked.language,
        token_budget=retrieved.token_budget,
        can_search=services.chat.takes_tools,
    )


def _store_question(session: Session, asked: Asked, target: _Target) -> MessageRow:
    if target.existing is not None:
        return message_store.find_shown(session, target.conversation_id, target.existing)
    return message_store.add_message(
        session, asked.conversation_id, uuid4(),
        role=Role.USER, content=asked.question, status=MessageStatus.DONE, scope=asked.scope,
    )  # fmt: skip


def _replay(services: Services, retrieved: Retrieved, context_tokens: int) -> Replay:
    return Replay(
        selection_hash=retrieved.snapshot.selection_hash,
        enabled_count=retrieved.snapshot.enabled_count,
        document_count=retrieved.snapshot.document_count,
        search_query=retrieved.search_query,
        further_queries=(),
        search_method=retrieved.search_method,
        degraded=retrieved.degraded,
        embedding_model=retrieved.embedding_model,
        chat_provider=services.chat.provider,
        chat_model=services.chat.model,
        context_tokens=context_tokens,
        scope=retrieved.scope.as_json() if retrieved.scope else None,
        extra={HISTORY_RESTS_ON: sorted(map(str, retrieved.history_rests_on))},
    )


def title_from(question: str) -> str:
    """Return a conversation's title from its first question: its first visible line, cut between
    words."""
    lines = map(one_line, question.splitlines())
    line = next(filter(has_visible_text, lines), "")
    if len(line) <= _TITLE_CHARACTERS:
        return line
    cut = line[:_TITLE_CHARACTERS]
    # Cut between words if there is a space in the second half; Chinese is cut anywhere.
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > _TITLE_CHARACTERS // 2 else cut).rstrip() + "…"
