"""Explanations: the one reason why a given document is not among the results of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from portal.domain.documents.selection import SelectionSource
from portal.domain.people import User
from portal.domain.search import MAX_RESULTS, SearchHit, SearchMode, SearchOutcome, SearchRequest
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE, NO_WORDS, PHRASE_NOT_FOUND
from portal.domain.search.explaining import FailedFilter, MissingReason, OtherDocument, WhyNot
from portal.errors import NotFound
from portal.services import Services
from portal.services.search import engine
from portal.services.search.corrections.respelling import parse
from portal.store.answers import conversations as conversation_store
from portal.store.embedding_models import registry
from portal.store.search import explaining as explaining_store
from portal.store.search.explaining import DocumentState
from portal.store.search.filters.narrowing import narrowing
from portal.text.likeness.near_duplicates import group_near_duplicates
from portal.text.terms.query_syntax import ParsedQuery

# The rank of a document is counted up to here; beyond, the exact rank is of no interest.
FARTHEST_RANK = 1000
# How many chunks of a long document are compared with results to find near-duplicates.
_MAX_COMPARED = 200


@dataclass(frozen=True, slots=True)
class _RankedHit:
    """A result and its rank, from 1."""

    rank: int
    hit: SearchHit


def why_not(services: Services, user: User, request: SearchRequest, document_id: UUID) -> WhyNot:
    """Return the reason why a document is not among the results of `request`, or that it is.

    Raises NotFound for a document that does not exist or that the user may not see, and the errors
    of `engine.search`.
    """
    state = _state(services, user, request, document_id)
    if (answer := _kept_out(state)) is not None:
        return answer
    shown = engine.search(services, user, replace(request, explain=False), is_shown=False)
    if (ranked := _find_ranked(document_id, shown)) is not None:
        return _ranked(state, ranked, shown, reason=MissingReason.IN_RESULTS)
    if (reason := _why_not_searched(shown)) is not None:
        return _because(state, reason)
    if (failed := _failed_filter(services, state, request, shown)) is not None:
        return replace(_because(state, MissingReason.EXCLUDED_BY_FILTER), failed_filter=failed)
    if not _is_embedded(services, state, request):
        return _because(state, MissingReason.NO_EMBEDDING_YET)
    return _outranked(services, user, request, state, shown)


def _state(
    services: Services, user: User, request: SearchRequest, document_id: UUID
) -> DocumentState:
    with services.database.begin() as session:
        conversation_id = request.conversation_id
        if conversation_id is not None and not conversation_store.belongs_to(
            session, conversation_id, user.id
        ):
            raise NotFound
        state = explaining_store.document_state(
            session, user, document_id, conversation_id=conversation_id
        )
    if state is None:
        raise NotFound
    return state


def _kept_out(state: DocumentState) -> WhyNot | None:
    """Return the reason why a document is excluded from every search, if it is."""
    summary = state.summary
    if summary.deleted_at is not None:
        return _because(state, MissingReason.IN_TRASH)
    if not state.has_text:
        return replace(
            _because(state, MissingReason.NOT_READY), status=summary.status, failure=summary.failure
        )
    if state.switch is None or state.switch.enabled:
        return None
    is_here = state.switch.source is SelectionSource.CONVERSATION
    return _because(
        state, MissingReason.OFF_IN_CONVERSATION if is_here else MissingReason.OFF_BY_DEFAULT
    )


def _why_not_searched(shown: SearchOutcome) -> MissingReason | None:
    """Return the reason why nothing was searched at all."""
    if NO_WORDS in shown.degraded:
        return MissingReason.NO_WORDS
    is_by_words = shown.search_method is SearchMode.KEYWORD
    if is_by_words and KEYWORD_UNAVAILABLE in shown.degraded:
        return MissingReason.KEYWORD_UNAVAILABLE
    return None


def _failed_filter(
    services: Services, state: DocumentState, request: SearchRequest, shown: SearchOutcome
) -> FailedFilter | None:
    """Return the first condition of the search that no chunk of the document meets."""
    applied = shown.correction if shown.correction and shown.correction.is_applied else None
    parsed = parse(request, applied.query if applied else request.query)
    if PHRASE_NOT_FOUND in shown.degraded:
        parsed = replace(parsed, phrases=())  # The search itself continued without them.
    document_id = state.summary.id
    with services.database.begin() as session:
        everything = narrowing(parsed, domain=request.domain, facets=request.facets)
        if explaining_store.passes(session, document_id, everything):
            return None
        if request.domain is not None and state.summary.domain != request.domain:
            return FailedFilter("domain", request.domain)
        limits = narrowing(ParsedQuery(""), facets=request.facets)
        if not explaining_store.passes(session, document_id, limits):
            return FailedFilter("facet", "")
        for failed, alone in _each_filter(parsed):
            if not explaining_store.passes(session, document_id, narrowing(alone)):
                return failed
    return FailedFilter("together", request.query)


def _each_filter(parsed: ParsedQuery) -> Iterator[tuple[FailedFilter, ParsedQuery]]:
    """Yield each of the query's operators alone; several types count as one filter."""
    if parsed.media_types:
        names = ", ".join(media_type.short for media_type in parsed.media_types)
        yield FailedFilter("type", names), ParsedQuery("", media_types=parsed.media_types)
    for title in parsed.titles:
        yield FailedFilter("title", title), ParsedQuery("", titles=(title,))
    for phrase in parsed.phrases:
        yield FailedFilter("phrase", phrase), ParsedQuery("", phrases=(phrase,))
    for word in parsed.excluded:
        yield FailedFilter("word", word), ParsedQuery("", excluded=(word,))


def _is_embedded(services: Services, state: DocumentState, request: SearchRequest) -> bool:
    if request.mode is SearchMode.KEYWORD:
        return True
    with services.database.begin() as session:
        model = registry.find_active(session)
        return model is not None and explaining_store.is_embedded(
            session, state.summary.id, model_id=model.id
        )


def _outranked(
    services: Services,
    user: User,
    request: SearchRequest,
    state: DocumentState,
    shown: SearchOutcome,
) -> WhyNot:
    """Return the reason for a document that was searched but ranked too low."""
    wide = replace(request, top_n=MAX_RESULTS, threshold=None, explain=False)
    found = engine.search(services, user, wide, is_shown=False)
    twin = _duplicate_of(services, state, found)
    if twin is not None and _find_ranked(twin.hit.document_id, shown) is not None:
        other = OtherDocument(twin.hit.document_id, twin.hit.title, twin.rank)
        return replace(
            _ranked(state, twin, shown, reason=MissingReason.DUPLICATE_OF), duplicate_of=other
        )
    ranked = twin or _find_ranked(state.summary.id, found)
    if ranked is None and len(found.hits) >= MAX_RESULTS:
        found = engine.search(services, user, replace(wide, top_n=FARTHEST_RANK), is_shown=False)
        ranked = _find_ranked(state.summary.id, found)
    if ranked is None:
        return _not_found_at_all(state, found, shown)
    threshold = request.threshold or 0.0
    is_by_words = request.mode is SearchMode.KEYWORD
    cut = ranked.hit.score if is_by_words else ranked.hit.confidence
    if cut < threshold:
        below = _ranked(state, ranked, shown, reason=MissingReason.BELOW_THRESHOLD)
        return replace(below, score=cut, threshold=threshold)
    return _ranked(state, ranked, shown, reason=MissingReason.RANKED)


def _not_found_at_all(state: DocumentState, found: SearchOutcome, shown: SearchOutcome) -> WhyNot:
    is_complete = len(found.hits) < FARTHEST_RANK
    if is_complete and found.search_method is SearchMode.KEYWORD:
        return _because(state, MissingReason.NO_WORD_IN_COMMON)
    return replace(
        _because(state, MissingReason.RANKED),
        ranked_beyond=len(found.hits) if is_complete else FARTHEST_RANK,
        shown_count=len(shown.hits),
    )


def _duplicate_of(
    services: Services, state: DocumentState, found: SearchOutcome
) -> _RankedHit | None:
    """Return the best result that is a near-duplicate of a chunk of the document."""
    twins = [_RankedHit(rank, hit) for rank, hit in enumerate(found.hits, 1) if hit.duplicate_count]
    if not twins:
        return None
    with services.database.begin() as session:
        texts = explaining_store.contents(session, [twin.hit.chunk_id for twin in twins])
        own = explaining_store.contents_of(session, state.summary.id, limit=_MAX_COMPARED)
    return _first_copied(twins, [texts.get(twin.hit.chunk_id, "") for twin in twins], own)


def _first_copied(
    twins: Sequence[_RankedHit], texts: Sequence[str], own: Sequence[str]
) -> _RankedHit | None:
    groups = group_near_duplicates([*texts, *own])
    copied = [group for group in groups[len(texts) :] if group < len(texts)]
    return twins[min(copied)] if copied else None


def _find_ranked(document_id: UUID, outcome: SearchOutcome) -> _RankedHit | None:
    for rank, hit in enumerate(outcome.hits, 1):
        if hit.document_id == document_id:
            return _RankedHit(rank, hit)
    return None


def _because(state: DocumentState, reason: MissingReason) -> WhyNot:
    return WhyNot(state.summary.id, state.summary.title, reason)


def _ranked(
    state: DocumentState, ranked: _RankedHit, shown: SearchOutcome, *, reason: MissingReason
) -> WhyNot:
    return replace(
        _because(state, reason),
        rank=ranked.rank,
        shown_count=len(shown.hits),
        score=ranked.hit.score,
        chunk_id=ranked.hit.chunk_id if ranked.hit.document_id == state.summary.id else None,
    )
