"""Searching: a question in, passages with scores and a calibrated confidence out.

A search reads what is in force, embeds the question outside any transaction (`prepared_search`),
runs one statement (`search_legs`, `store.search`), and makes of its rows what a person reads
(`search_results`). What fails on the way is left out and named in `degraded`: one broken index
stops no one.
"""

from __future__ import annotations

from dataclasses import replace

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.errors import NotFound, VectorStoreDisabled
from portal.observability import metrics
from portal.services import Services
from portal.services.search import legs, preparation, results, reuse
from portal.services.search.legs import (
    KEYWORD_UNAVAILABLE,
    NO_WORDS,
    PHRASE_NOT_FOUND,
    VECTOR_UNAVAILABLE,
    ModelGone,
)
from portal.store.answers import conversations as conversation_store
from portal.store.search.context import SearchContext, read_context
from portal.store.search.legs import timed
from portal.text.query_syntax import ParsedQuery
from portal.text.scripts import has_visible_text

__all__ = [
    "KEYWORD_UNAVAILABLE",
    "NO_WORDS",
    "PHRASE_NOT_FOUND",
    "VECTOR_UNAVAILABLE",
    "search",
    "search_or_words",
]


def search(
    services: Services, user: User, request: SearchRequest, *, deadline: Deadline | None = None
) -> SearchOutcome:
    """Find passages among what the person may see and has switched on, best first.

    Passages are looked for until `deadline`, and for `search.statement_timeout_s` at most. A leg
    that fails or is late is left out and named in `degraded`. Raises NotFound for a foreign
    conversation, EmbedderUnavailable when meaning alone was asked for and the model does not
    answer, InvalidQueryVector, VectorStoreDisabled, Unavailable when no leg is in time.
    """
    with metrics.searching(request.mode.value):
        outcome = _search(services, user, request, deadline)
    metrics.search_found(outcome.search_method.value, len(outcome.hits), outcome.degraded)
    return outcome


def search_or_words(services: Services, user: User, request: SearchRequest) -> SearchOutcome:
    """Search; where vectors are switched off, by words alone, and name it in `degraded`."""
    if services.settings.vector_store_enabled or request.mode is not SearchMode.HYBRID:
        return search(services, user, request)
    outcome = search(services, user, replace(request, mode=SearchMode.KEYWORD))
    return replace(outcome, degraded=(*outcome.degraded, VectorStoreDisabled.code))


def _search(
    services: Services, user: User, request: SearchRequest, deadline: Deadline | None
) -> SearchOutcome:
    if request.mode is not SearchMode.KEYWORD and not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    parsed = preparation.parsed_as(request, request.query)
    if request.query_vector is None and not has_visible_text(parsed.text):
        return _ask_nothing(services, user, request, parsed)
    try:
        return _find_or_remember(services, user, request, parsed, deadline)
    except ModelGone:
        # Dropped by an administrator in this very moment; the next one serves.
        return _find_or_remember(services, user, request, parsed, deadline)


def _find_or_remember(
    services: Services,
    user: User,
    request: SearchRequest,
    parsed: ParsedQuery,
    deadline: Deadline | None,
) -> SearchOutcome:
    milliseconds: dict[str, float] = {}
    with timed(milliseconds, "configuration"):
        context = _read_context(services, user, request)

    def find() -> SearchOutcome:
        prepared = preparation.prepare(
            services, user, request, parsed, context=context, milliseconds=milliseconds
        )
        # The question's vector has a patience of its own.
        own = Deadline.within(services.settings.search.statement_timeout_s)
        return legs.run(services, prepared, min(own, deadline or own))

    return reuse.remembered(services, user, request, context, find)


def _ask_nothing(
    services: Services, user: User, request: SearchRequest, parsed: ParsedQuery
) -> SearchOutcome:
    """A question without a visible character, or of nothing but conditions, which says so."""
    if request.conversation_id is not None:
        with services.database.begin() as session:
            if not conversation_store.belongs_to(session, request.conversation_id, user.id):
                raise NotFound
    return results.nothing(request, (NO_WORDS,) if parsed.has_filters else ())


def _read_context(services: Services, user: User, request: SearchRequest) -> SearchContext:
    with services.database.read() as session:
        context = read_context(
            session,
            user.id,
            request.conversation_id,
            keyword_backend=services.settings.search.keyword_backend,
        )
    if request.conversation_id is not None and not context.has_conversation:
        raise NotFound
    return context
