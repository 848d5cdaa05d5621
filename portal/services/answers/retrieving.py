"""Retrieval for answers: whole chunks found for the question, among those enabled now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TypeVar
from uuid import UUID

from portal.answering import follow_up
from portal.answering.quoting.parts import standalone_parts
from portal.answering.quoting.questions import without_greeting
from portal.domain.answering import ChatModel, Source, Turn
from portal.domain.conversations import Role
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import (
    MAX_QUERY_CHARACTERS,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
)
from portal.errors import EmbedderUnavailable, existing
from portal.services import Services
from portal.services.answers import replying
from portal.services.answers.replying import Reply
from portal.services.documents import private_reads
from portal.services.search import dynamic_config, engine
from portal.store.answers import conversations as conversation_store
from portal.store.answers import sources as source_store
from portal.store.answers.sources import PastMessage
from portal.store.documents import switches as switch_store
from portal.store.documents.switches import Snapshot
from portal.store.embedding_models import registry
from portal.store.people import accounts as account_store
from portal.text.language import detect_language, detect_question_language

# Chunks to quote from, unless an administrator sets a number, and chunks in the other language.
QUOTED_FROM, _ACROSS = 12, 16
# Attempts in all, when documents change between the search and the reading of chunks: a new version
# of a document has other chunks.
_MAX_ATTEMPTS = 3
# Replaces an answer that cites documents that are now disabled, so that turns still alternate.
_WITHHELD = {
    "zh": "（此处的回答所依据的文档现已不在可用范围内，内容略去。）",
    "en": "(This answer is left out: it rests on documents that do not count any more.)",
}


_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its context: `before` is its position in the conversation, None at the end.
    `language` is `zh` or `en`. A `scope` narrows this question to what it names."""

    user: User
    conversation_id: UUID
    question: str
    before: int | None
    language: str
    scope: AskScope | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The input of an answer: chunks, best first and numbered from 1; the turns before the question
    with the documents that they cite; and the enabled set at that moment. With `reply` nothing was
    searched; with `is_outline` the chunks are those of documents to outline above the reply, or for
    a model to read as a whole, which have `chunk_count` chunks in all; with `is_more` they are
    those that the last answer quotes from."""

    sources: tuple[Source, ...]
    turns: tuple[Turn, ...]
    history_rests_on: frozenset[UUID]
    snapshot: Snapshot
    scope: AskScope
    token_budget: int
    search_query: str
    search_method: str
    degraded: tuple[str, ...]
    embedding_model: str | None
    reply: str | None = None
    is_outline: bool = False
    is_more: bool = False
    chunk_count: int = 0


def ask_in(
    services: Services, user: User, conversation_id: UUID, question: str, before: int | None,
    *, scope: AskScope | None = None,
) -> Asked:  # fmt: skip
    """Return the question with the language of its answer: its own, else that of earlier
    questions, else the user's."""
    language = detect_question_language(question)
    if language == "other":
        with services.database.begin() as session:
            past = source_store.read_past(session, user, conversation_id, before=before)
        language = detect_language(" ".join(m.content for m in past if m.role == Role.USER))
    if language == "other":
        language = "zh" if (user.language or "").startswith("zh") else "en"
    return Asked(user, conversation_id, question, before, language, scope)


def retrieve(services: Services, asked: Asked) -> Retrieved:
    """Search for the question as asked and, in a follow-up, as rewritten. Raises the errors of
    `engine.search`."""
    if (without_search := _retrieve_without_search(services, asked)) is not None:
        return without_search
    query = _standalone(services, asked)
    queries = _queries(services.chat, asked, query)
    return retry_until_complete(lambda: _search_and_read(services, asked, queries))


def _retrieve_without_search(services: Services, asked: Asked) -> Retrieved | None:
    """Return the portal's own reply, or the documents to read as a whole; None for a question."""
    with services.database.begin() as session:
        if services.chat.only_quotes:
            reply = replying.find_reply(
                session, asked.user, asked.conversation_id, asked.question, asked.language,
                scope=asked.scope, before=asked.before,
            )  # fmt: skip
        else:
            chunks = replying.chunks_to_read(
                session, asked.user, asked.conversation_id, asked.question, scope=asked.scope
            )
            reply = Reply(outlined=chunks) if chunks else replying.find_reply_beside_model(
                session, asked.user, asked.conversation_id, asked.question, asked.language,
                scope=asked.scope,
            )  # fmt: skip
    if reply is None:
        return None
    retrieved, _ = _search_and_read(services, asked, (), outlined=reply.outlined)
    read = {source.document_id for source in retrieved.sources}
    private_reads.record(services, asked.user, read, found=False)
    is_outline = not reply.is_more and (reply.text is None or bool(reply.outlined))
    return replace(retrieved, reply=reply.text, is_outline=is_outline, is_more=reply.is_more)


def _queries(chat: ChatModel, asked: Asked, query: str) -> tuple[str, ...]:
    """Return the search queries; the first is recorded as the query."""
    # A language model splits a question on its own.
    if not chat.only_quotes:
        return tuple(dict.fromkeys((query, asked.question)))
    parts = standalone_parts(query)
    return tuple(dict.fromkeys((query, asked.question, *(searched for _, searched in parts))))


def retry_until_complete(read: Callable[[], tuple[_Result, bool]]) -> _Result:
    """Retry until everything that was found could be read, up to a limit; return the last
    result."""
    for _ in range(_MAX_ATTEMPTS):
        result, is_complete = read()
        if is_complete:
            break
    return result


def _search_and_read(
    services: Services, asked: Asked, queries: Sequence[str], *, outlined: Sequence[UUID] = ()
) -> tuple[Retrieved, bool]:
    """Return the chunks found, or those to outline, and whether all of them still existed."""
    # The first query is recorded as the query.
    outcomes = [_search(services, asked, one) for one in queries]
    hits = _merged([outcome.hits for outcome in outcomes])
    with services.database.begin() as session:
        source_store.use_one_snapshot(session)
        stored = source_store.read_sources(
            session, asked.user, asked.conversation_id,
            [*outlined, *(hit.chunk_id for hit in hits)],
        )  # fmt: skip
        snapshot = switch_store.snapshot(session, asked.user, asked.conversation_id, asked.scope)
        past = source_store.read_past(
            session, asked.user, asked.conversation_id, before=asked.before
        )
        scope = asked.scope or conversation_store.get_scope(session, asked.conversation_id)
        config = dynamic_config.read(session, services.settings.search)
        model = registry.find_active(session)
        read = _in_full(outlined, stored)
        documents = {one.document_id for one in read}
        chunk_count = source_store.count_chunks(session, documents) if documents else 0
    method = outcomes[0].search_method if outcomes else SearchMode.HYBRID
    retrieved = Retrieved(
        sources=read if outlined else sources_of(hits, stored, after=0),
        turns=_turns(past, asked.language),
        history_rests_on=_read_by(services.chat, past),
        snapshot=snapshot,
        scope=scope,
        token_budget=config.context_token_budget,
        search_query=queries[0] if queries else asked.question,
        search_method=method.value,
        degraded=tuple(dict.fromkeys(chain.from_iterable(one.degraded for one in outcomes))),
        # A search without vectors used no embedding model.
        embedding_model=model.name
        if model and outcomes and method is not SearchMode.KEYWORD
        else None,
        chunk_count=chunk_count,
    )
    return retrieved, len(stored) == len(hits)


def still_readable(
    services: Services, asked: Asked, sources: Sequence[Source]
) -> tuple[Source, ...]:
    """Return the sources that the user may still read, without those that were withdrawn, switched
    off or deleted while a model wrote. Raises NotFound if the account is disabled or gone."""
    asked = _with_current_rights(services, asked)
    with services.database.begin() as session:
        stored = source_store.read_sources(
            session, asked.user, asked.conversation_id, [one.chunk_id for one in sources]
        )
    return tuple(one for one in sources if one.chunk_id in stored)


def _with_current_rights(services: Services, asked: Asked) -> Asked:
    with services.database.read() as session:
        user = account_store.with_current_rights(session, asked.user)
    return replace(asked, user=existing(user))


def search_further(
    services: Services, asked: Asked, query: str, known: Sequence[Source]
) -> tuple[Source, ...]:
    """Return the chunks that another query finds, best first. New ones are numbered after the known
    ones, which keep their numbers."""
    query = query[:MAX_QUERY_CHARACTERS]
    asked = _with_current_rights(services, asked)
    return _read_beside(services, asked, known, lambda: _search(services, asked, query))


def search_across(
    services: Services, asked: Asked, query: str, known: Sequence[Source]
) -> tuple[Source, ...]:
    """Return the nearest chunks in the language that the question is not in, numbered like those of
    `search_further`. In one list with chunks in its own language they would rarely come first."""
    asked = _with_current_rights(services, asked)
    request = SearchRequest(
        query[:MAX_QUERY_CHARACTERS],
        conversation_id=asked.conversation_id,
        scope=asked.scope,
        mode=SearchMode.VECTOR,
        language="en" if asked.language == "zh" else "zh",
        top_n=_ACROSS,
    )
    return _read_beside(
        services, asked, known, lambda: engine.search(services, asked.user, request)
    )


def _read_beside(
    services: Services, asked: Asked, known: Sequence[Source], search: Callable[[], SearchOutcome]
) -> tuple[Source, ...]:
    numbers = {source.chunk_id: source for source in known}

    def search_and_read() -> tuple[tuple[Source, ...], bool]:
        outcome = search()
        hits = [hit for hit in outcome.hits if hit.chunk_id not in numbers]
        with services.database.begin() as session:
            stored = source_store.read_sources(
                session, asked.user, asked.conversation_id, [hit.chunk_id for hit in hits]
            )
        new = {one.chunk_id: one for one in sources_of(hits, stored, after=len(known))}
        sources = (numbers.get(hit.chunk_id) or new.get(hit.chunk_id) for hit in outcome.hits)
        return tuple(filter(None, sources)), len(stored) == len(hits)

    return retry_until_complete(search_and_read)


def _standalone(services: Services, asked: Asked) -> str:
    """Rewrite the question to be understood without the conversation."""
    with services.database.begin() as session:
        past = source_store.read_past(
            session, asked.user, asked.conversation_id, before=asked.before
        )
    turns, only_quotes = _turns(past, asked.language), services.chat.only_quotes
    question = without_greeting(asked.question) if only_quotes else asked.question
    if not turns:
        return question
    query = (
        _by_rule(services, turns, question)
        if only_quotes
        else follow_up.rewritten(services.chat, turns, question)
    )
    return query[:MAX_QUERY_CHARACTERS].strip() or asked.question


def _by_rule(services: Services, turns: Sequence[Turn], question: str) -> str:
    def likeness(name: str, texts: Sequence[str]) -> list[float]:
        vectors = services.embedder.embed_chunks([name, *texts])
        nearness: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return nearness

    # Only the bundled model: an endpoint that is down would delay the question by its retries, and
    # hashed words have no meaning.
    if services.settings.embedding.provider == "bundled":
        with suppress(EmbedderUnavailable):
            return follow_up.search_query(turns, question, likeness)
    return follow_up.search_query(turns, question)


def _search(services: Services, asked: Asked, query: str) -> SearchOutcome:
    request = SearchRequest(
        query,
        conversation_id=asked.conversation_id,
        scope=asked.scope,
        default_top_n=QUOTED_FROM if services.chat.only_quotes else None,
    )
    return engine.search_or_words(services, asked.user, request)


def _merged(lists: Sequence[Sequence[SearchHit]]) -> list[SearchHit]:
    """Merge hits, each chunk once."""
    # Several searches are ordered by confidence, the only score that is comparable between them,
    # then by rank.
    if len(lists) <= 1:
        return [hit for hits in lists for hit in hits]
    best: dict[UUID, SearchHit] = {}
    for hit in chain.from_iterable(zip_longest(*lists)):
        if hit is not None and (
            hit.chunk_id not in best or best[hit.chunk_id].confidence < hit.confidence
        ):
            best[hit.chunk_id] = hit
    return sorted(best.values(), key=lambda hit: -hit.confidence)


def sources_of(
    hits: Sequence[SearchHit], stored: dict[UUID, Source], *, after: int
) -> tuple[Source, ...]:
    """Return the chunks that could be read, in the order of the hits and with their scores."""
    read = [hit for hit in hits if hit.chunk_id in stored]
    return tuple(
        replace(
            stored[hit.chunk_id],
            number=number,
            score=hit.score,
            vector_score=hit.vector_score,
            text_score=hit.text_score,
            confidence=hit.confidence,
            low_confidence=hit.low_confidence,
            found_by=hit.source,
        )
        for number, hit in enumerate(read, after + 1)
    )


def _in_full(chunk_ids: Sequence[UUID], stored: dict[UUID, Source]) -> tuple[Source, ...]:
    """Return chunks that were chosen without a search, in the order given."""
    read = (stored[chunk_id] for chunk_id in chunk_ids if chunk_id in stored)
    return tuple(replace(source, number=number) for number, source in enumerate(read, 1))


def _read_by(chat: ChatModel, past: Sequence[PastMessage]) -> frozenset[UUID]:
    """Return the documents whose content reaches the model through earlier turns."""
    # Quotations are made from chunks alone.
    if chat.only_quotes:
        return frozenset()
    shown = (message.rests_on for message in past if not message.is_withheld)
    return frozenset(one for one in chain.from_iterable(shown) if one is not None)


def _turns(past: Sequence[PastMessage], language: str) -> tuple[Turn, ...]:
    """Return earlier turns, with answers withheld whose documents no longer count."""
    turns: list[Turn] = []
    for message in past:
        if message.role == Role.USER:
            turns.append(Turn(message.role, message.content))
        elif message.is_withheld:
            turns.append(Turn(message.role, _WITHHELD[language]))
        elif message.content.strip():
            turns.append(Turn(message.role, message.content))
        elif turns and turns[-1].role == Role.USER:
            # There was no answer: the question alone would directly precede the next.
            turns.pop()
    return tuple(turns)
