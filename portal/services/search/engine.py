"""The search engine: a query in, chunks with scores and a calibrated confidence out.

A search reads its context, and returns the cached result if nothing has changed. Otherwise it makes
a plan (`planning`), embedding the query while no connection is held, asks both legs (`finding`,
`store.search.legs`), and turns their offers into results (`results`). Steps that fail are left out
and listed in `degraded`, so that one broken index does not stop a search.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.domain.search.degraded import NO_WORDS
from portal.errors import NotFound, VectorStoreDisabled
from portal.observability import metrics
from portal.services import Services
from portal.services.documents import private_reads
from portal.services.search import cache, results
from portal.services.search.corrections import respelling, suggestions
from portal.services.search.finding import DictionaryMissing, ModelGone, find
from portal.services.search.planning import make_plan
from portal.settings.search import uses_bm25
from portal.store.answers import conversations as conversation_store
from portal.store.documents.scopes import require_visible_scope
from portal.store.search.context import SearchContext, read_context
from portal.store.search.legs.trace import Trace
from portal.store.search.selection.visible_corpus import VisibleCorpus
from portal.text.characters.scripts import has_visible_text
from portal.text.terms import lexicon
from portal.text.terms.query_syntax import ParsedQuery


def search(
    services: Services, user: User, request: SearchRequest,
    *, deadline: Deadline | None = None, is_shown: bool = True,
) -> SearchOutcome:  # fmt: skip
    """Return the best chunks among those that the user may see and has switched on.

    The search ends at `deadline`, and after `search.statement_timeout_s` at the latest. A leg that
    fails or is late is left out and listed in `degraded`. With `is_shown` the audit log names the
    private documents of others that an administrator finds. Raises NotFound for another user's
    conversation and for what the user may not see in the scope, EmbedderUnavailable when a
    semantic-only search was requested and the model does not answer, InvalidQueryVector,
    VectorStoreDisabled, Unavailable when no leg is in time.
    """
    if request.mode is not SearchMode.KEYWORD and not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    if request.scope:
        with services.database.begin() as session:
            require_visible_scope(session, user, request.scope)
    parsed = respelling.parse(request, request.query)
    if request.query_vector is None and not has_visible_text(parsed.text):
        return _find_nothing(services, user, request, parsed)
    trace = Trace()
    ranks_words = request.mode is not SearchMode.VECTOR and uses_bm25(services.settings.search)
    server = services.database.ranking_words() if ranks_words else nullcontext()
    try:
        with server, metrics.searching(request.mode.value):
            with trace.timed("configuration"):
                context, corpus = _read_context(services, user, request)
            key = cache.key_of_search(services, user, request, context)
            outcome = None if key is None else services.search_cache.get(key)
            if outcome is None:
                # Checked first: the calibration may become ready during the search, after its use.
                is_settled = key is not None and cache.is_settled(services, request, context)
                plan = make_plan(
                    services, user, request, parsed, context=context, corpus=corpus, trace=trace
                )
                plan, found = find(services, plan, trace, deadline)
                outcome = results.outcome(services, plan, found, trace)
                suggestion = suggestions.suggest(services, plan, outcome, found, trace.enabled)
                outcome = replace(outcome, correction=suggestion)
                if key is not None and is_settled:
                    services.search_cache.put(key, outcome)
    except ModelGone:
        # An administrator dropped the model just now; the next one is active.
        return search(services, user, request, deadline=deadline, is_shown=is_shown)
    except DictionaryMissing:
        # The process has just started. Loading the dictionary during the search would leave the
        # legs less time.
        lexicon.load()
        return search(services, user, request, deadline=deadline, is_shown=is_shown)
    metrics.search_found(outcome.search_method.value, len(outcome.hits), outcome.degraded)
    if is_shown:
        found_ids = {hit.document_id for hit in outcome.hits}
        private_reads.record(services, user, found_ids, found=True)
    return outcome


def search_or_words(
    services: Services, user: User, request: SearchRequest, *, is_shown: bool = True
) -> SearchOutcome:
    """Search; if vectors are disabled, search by keywords alone and list that in `degraded`."""
    if services.settings.vector_store_enabled or request.mode is not SearchMode.HYBRID:
        return search(services, user, request, is_shown=is_shown)
    words = replace(request, mode=SearchMode.KEYWORD)
    outcome = search(services, user, words, is_shown=is_shown)
    return replace(outcome, degraded=(*outcome.degraded, VectorStoreDisabled.code))


def _find_nothing(
    services: Services, user: User, request: SearchRequest, parsed: ParsedQuery
) -> SearchOutcome:
    """Return an empty outcome for a query without visible characters, or with filters only."""
    if request.conversation_id is not None:
        with services.database.begin() as session:
            if not conversation_store.belongs_to(session, request.conversation_id, user.id):
                raise NotFound
    degraded = (NO_WORDS,) if parsed.has_filters else ()
    return SearchOutcome(request.query, (), 0, request.mode, degraded=degraded)


def _read_context(
    services: Services, user: User, request: SearchRequest
) -> tuple[SearchContext, VisibleCorpus | None]:
    """Read the search context and what the user may see; None for administrators, who see all."""
    wanted = services.settings.search.keyword_backend
    with services.database.driver() as reader:
        context = read_context(reader, user.id, request.conversation_id, keyword_backend=wanted)
        if request.conversation_id is not None and not context.has_conversation:
            raise NotFound
        visible = services.enabled_sets.visible
        corpus = None if user.is_admin else visible.get(reader, user.id, context.versions)
    return context, corpus
