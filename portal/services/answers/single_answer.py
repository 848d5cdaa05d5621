"""One answer to one question, outside any conversation; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

import structlog

from portal.answering.markers import MarkerStream
from portal.answering.writing import prompt
from portal.answering.writing.prompt import Prompt
from portal.domain.answering import Abstained, ChatRequest, TextDelta, Truncated, Turn
from portal.domain.conversations import Role
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import SearchHit, SearchRequest, Weights
from portal.domain.search.degraded import ANSWER_CUT_OFF
from portal.errors import ChatUnavailable
from portal.services import Services
from portal.services.answers import replying, writers
from portal.services.answers.model_events import chat_events
from portal.services.answers.retrieving import QUOTED_FROM, retry_until_complete, sources_of
from portal.services.search import dynamic_config, engine
from portal.services.search.programs import document_search
from portal.services.search.programs.document_search import DocumentHit, DocumentsFound
from portal.store.answers import sources as source_store
from portal.text.language import detect_question_language

log = structlog.get_logger(__name__)


class AnswerStatus(StrEnum):
    """Outcomes of an answer. `abstained`: the hits contain no answer, and the text says so."""

    DONE = "done"
    ABSTAINED = "abstained"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class SingleAnswer:
    """An answer written from `hits`. Marker ``[n]`` of `text` refers to `citations[n - 1]`. `error`
    is why there is no text, `degraded` lists codes of what was left out."""

    status: AnswerStatus
    text: str
    citations: tuple[UUID, ...]
    hits: tuple[DocumentHit, ...]
    degraded: tuple[str, ...]
    error: ChatUnavailable | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """The model's text, and the documents of its markers in order of first use."""

    text: str
    cited: tuple[UUID, ...]
    has_abstained: bool
    is_cut_off: bool


def answer(
    services: Services, user: User, query: str, *, k: int, weights: Weights, language: str,
    scope: AskScope | None = None,
) -> SingleAnswer:  # fmt: skip
    """Answer from the best chunk of each of the `k` best documents. `language`, `zh` or `en`, is
    used for questions that are in neither.

    A failure of the chat model is not an error, because there are still hits. Raises
    TooManyAnswers, TooManyOwnAnswers, and the errors of `document_search.search`.
    """
    services = writers.with_current(services)
    slot = services.answer_slots.take(user.id, services.settings.chat)

    def search_and_read() -> tuple[tuple[DocumentsFound, ChatRequest, Prompt], bool]:
        found = document_search.search(services, user, query, limit=k, weights=weights, scope=scope)
        chunks = [hit.chunk for hit in found.hits]
        request, built, has_all = _request(
            services, user, found.query, chunks, language, scope=scope
        )
        return (found, request, built), has_all

    try:
        return _answered(services, *retry_until_complete(search_and_read))
    finally:
        slot.release()


def is_answered(services: Services, user: User, question: str, *, language: str) -> bool:
    """Return whether the chunks that a new conversation would find answer a question. Raises the
    errors of `engine.search`, and ChatUnavailable."""
    request = SearchRequest(question, default_top_n=QUOTED_FROM)
    hits = engine.search_or_words(services, user, request, is_shown=False).hits
    chat_request, built, _ = _request(services, user, question, hits, language)
    written = _written(services, chat_request, built)
    return bool(written.cited) and not written.has_abstained


def _answered(
    services: Services, found: DocumentsFound, request: ChatRequest, built: Prompt
) -> SingleAnswer:
    try:
        written = _written(services, request, built)
    except ChatUnavailable as error:
        log.warning("answer_unavailable", code=error.code)
        degraded = (*found.degraded, error.code)
        return SingleAnswer(AnswerStatus.UNAVAILABLE, "", (), found.hits, degraded, error)
    status = AnswerStatus.ABSTAINED if written.has_abstained else AnswerStatus.DONE
    degraded = (*found.degraded, ANSWER_CUT_OFF) if written.is_cut_off else found.degraded
    return SingleAnswer(status, written.text, written.cited, found.hits, degraded)


def _request(
    services: Services, user: User, query: str, chunks: Sequence[SearchHit], language: str,
    *, scope: AskScope | None = None,
) -> tuple[ChatRequest, Prompt, bool]:  # fmt: skip
    """Return the request to the chat model, its prompt, and whether all chunks are still
    enabled."""
    detected = detect_question_language(query)
    language = language if detected == "other" else detected
    with services.database.begin() as session:
        stored = source_store.read_sources(
            session, user, None, [chunk.chunk_id for chunk in chunks]
        )
        reply = None
        if services.chat.only_quotes:
            reply = replying.find_reply(session, user, None, query, language, scope=scope)
        token_budget = dynamic_config.read(session, services.settings.search).context_token_budget
    sources = sources_of(chunks, stored, after=0)
    if services.chat.only_quotes:
        built = Prompt("", sources, 0)
    else:
        built = prompt.build(sources, language=language, token_budget=token_budget)
    request = ChatRequest(
        system=built.system,
        turns=(Turn(Role.USER.value, query),),
        question=query,
        language=language,
        sources=built.sources,
        reply=reply.text if reply and not reply.outlined else None,
    )
    return request, built, len(stored) == len(chunks)


def _written(services: Services, request: ChatRequest, built: Prompt) -> _Written:
    """Return the model's whole text. Raises ChatUnavailable, also when it is empty."""
    markers = MarkerStream(built.sources)
    documents = {source.number: source.document_id for source in built.sources}
    parts: list[str] = []
    has_abstained = is_cut_off = False
    with closing(chat_events(services, request)) as events:
        for event in events:
            if isinstance(event, TextDelta) and (quoted := event.quoted):
                markers.add_sources([replace(quoted.source, number=quoted.number)])
                documents[quoted.number] = quoted.source.document_id
            is_cut_off = is_cut_off or isinstance(event, Truncated)
            if isinstance(event, TextDelta | Abstained):
                parts += [piece.text for piece in markers.feed(event.text)]
            if isinstance(event, Abstained):
                has_abstained = True
                break
    parts += [piece.text for piece in markers.close(is_cut=is_cut_off)]
    text = "".join(parts).strip()
    if not text:
        raise ChatUnavailable("its endpoint wrote nothing")
    cited = tuple(documents[number] for number in markers.order)
    return _Written(text, cited, has_abstained, is_cut_off)
