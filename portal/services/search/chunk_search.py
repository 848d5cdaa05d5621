"""Searches of passages by programs: every passage for itself, with scores that can be checked.

They are the portal's own search (`searching`) with nothing added: queries are text and nothing
else, near-identical passages are not shown as one, and the scores are the model's own cosine and
BM25, uncorrected, so that their weighted sum is the combined score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from markupsafe import Markup, escape

from portal.domain.chunk_search import (
    FoundChunk,
    FoundChunks,
    FusionMethod,
    HybridQuery,
    SemanticQuery,
    Within,
)
from portal.domain.chunks import JobChunk
from portal.domain.deadlines import Deadline
from portal.domain.people import User
from portal.domain.search import (
    Correction,
    Fusion,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Unit,
)
from portal.errors import (
    InvalidQueryVector,
    NoEmbedding,
    NotFound,
    Unavailable,
    VectorStoreDisabled,
)
from portal.services import Services
from portal.services.search import engine
from portal.store.documents import job_chunks
from portal.text.analyser import index_terms, query_terms
from portal.text.folding import fold
from portal.text.highlight import highlight_spans
from portal.text.spelling import likeness, words_of


def by_meaning(
    services: Services, user: User, query: SemanticQuery, *, deadline: Deadline | None = None
) -> FoundChunks:
    """The passages nearest to a question, or to a vector. Raises what `searching.search` does."""
    request = replace(
        _request(query.text, query.top_k, SearchMode.VECTOR, query.within),
        query_vector=query.vector,
        min_similarity=query.threshold or None,
    )
    outcome = engine.search(services, user, request, deadline=deadline)
    return _found(services, user, request, outcome)


def each_by_meaning(
    services: Services, user: User, queries: Iterable[SemanticQuery]
) -> Iterator[FoundChunks | None]:
    """What each of several queries finds, in their order, within the time of one search: None for
    those that had no turn, or too short a one. Raises what `searching.search` does, Unavailable
    also when the first query alone takes all of it."""
    deadline = Deadline.within(services.settings.search.statement_timeout_s)
    is_first = True
    for query in queries:
        if not is_first and deadline.is_over:
            yield None
            continue
        try:
            # The first also waits for the question's vector and, just started, for the model:
            # that is not part of what it has for looking.
            yield by_meaning(services, user, query, deadline=None if is_first else deadline)
        except Unavailable:
            if is_first or not deadline.is_over:
                raise
            yield None
        is_first = False


def by_words(
    services: Services,
    user: User,
    text: str,
    *,
    top_k: int,
    fuzzy: bool = False,
    highlight: bool = True,
    within: Within,
) -> FoundChunks:
    """The passages that say best what is asked, by BM25. Raises what `searching.search` does."""
    request = replace(_request(text, top_k, SearchMode.KEYWORD, within), fuzzy=fuzzy)
    outcome = engine.search(services, user, request)
    found = _found(services, user, request, outcome)
    applied = outcome.correction if outcome.correction and outcome.correction.is_applied else None
    if fuzzy:
        typed = applied or Correction(text, query_terms(text), ())
        items = (replace(one, similarity=_similarity(one.chunk, typed)) for one in found.items)
        found = replace(found, items=tuple(items))
    if not highlight:
        return found
    terms = applied.terms if applied else query_terms(text)
    items = (replace(one, highlighted=highlighted(one.chunk.content, terms)) for one in found.items)
    return replace(found, items=tuple(items))


def by_both(services: Services, user: User, query: HybridQuery) -> FoundChunks:
    """The best passages by the fusion of both. Raises what `searching.search` does."""
    request = replace(
        _request(query.text, query.top_k, SearchMode.HYBRID, query.within),
        fusion=query.fusion,
        weights=query.weights,
        rrf_k=query.rrf_k,
        min_similarity=query.threshold or None,
    )
    outcome = engine.search(services, user, request)
    found = _found(services, user, request, outcome)
    combined = (replace(one, combined=_combined(one, query)) for one in found.items)
    items = sorted(combined, key=lambda one: -one.combined)
    return replace(found, items=tuple(items), method=_method(query.fusion, outcome))


def similar(
    services: Services,
    user: User,
    chunk_id: UUID,
    *,
    top_k: int,
    exclude_same_job: bool = False,
    conversation_id: UUID | None = None,
) -> FoundChunks:
    """The passages nearest to one that is searched, without itself.

    Raises NotFound for one that the person may not see, NoEmbedding, VectorStoreDisabled.
    """
    if not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    with services.database.begin() as session:
        chunk = job_chunks.find_searched(session, user, chunk_id)
        if chunk is None:
            raise NotFound
        vector = job_chunks.read_embedding(session, chunk_id)
    if vector is None:
        raise NoEmbedding
    request = replace(
        # One more, for the passage itself is among them.
        _request("", top_k + 1, SearchMode.VECTOR, Within(conversation_id=conversation_id)),
        query_vector=vector,
        without_job_id=chunk.job_id if exclude_same_job else None,
    )
    try:
        found = _found(services, user, request, engine.search(services, user, request))
    except InvalidQueryVector as error:  # Another model began to serve in between.
        raise Unavailable from error
    others = [one for one in found.items if one.chunk.id != chunk_id]
    return replace(found, items=tuple(others[:top_k]))


def _request(text: str, top_k: int, mode: SearchMode, within: Within) -> SearchRequest:
    return SearchRequest(
        query=text,
        top_n=top_k,
        mode=mode,
        conversation_id=within.conversation_id,
        operators=False,
        one_hit_per=Unit.PASSAGE,
        as_shown=True,
        job_id=within.job_id,
        metadata=within.metadata,
    )


def _found(
    services: Services, user: User, request: SearchRequest, outcome: SearchOutcome
) -> FoundChunks:
    """The hits with their passages, as far as these still count."""
    ids = [hit.chunk_id for hit in outcome.hits]
    with services.database.begin() as session:
        chunks = job_chunks.read_found(session, user, request.conversation_id, ids)
    return FoundChunks(
        items=tuple(
            FoundChunk(
                chunk=chunks[hit.chunk_id],
                cosine=hit.vector_score or 0.0,
                text_score=hit.text_score,
                combined=_own_score(hit, request.mode),
                vector_rank=hit.vector_rank,
                text_rank=hit.text_rank,
            )
            for hit in outcome.hits
            if hit.chunk_id in chunks
        ),
        degraded=outcome.degraded,
        correction=outcome.correction,
    )


def _own_score(hit: SearchHit, mode: SearchMode) -> float:
    return (hit.vector_score or 0.0) if mode is SearchMode.VECTOR else hit.text_score


def _combined(found: FoundChunk, query: HybridQuery) -> float:
    """The combined score, of nothing but what the result shows."""
    if query.fusion is Fusion.RRF:
        ranks = (found.vector_rank, found.text_rank)
        return sum(1 / (query.rrf_k + rank) for rank in ranks if rank is not None)
    total = query.weights.vector + query.weights.text
    vector_share, text_share = query.weights.vector / total, query.weights.text / total
    return vector_share * found.cosine + text_share * found.text_score


def _similarity(chunk: JobChunk, correction: Correction) -> float:
    """Return how like the words typed are to those of a chunk: the mean over the words, 1 for one
    that stands there as typed, less for another spelling of it, 0 for none."""
    held = set(index_terms(f"{chunk.title}\n{chunk.heading or ''}\n{chunk.content}").split())
    respelt = {
        word: likeness(fold(typed).text, fold(new).text)
        for typed, new in correction.replaced
        for word in words_of(new)
    }
    words = words_of(correction.query)
    alike = [
        respelt.get(word, 1.0) if held.issuperset(found.term.split()) else 0.0
        for word, found in words.items()
    ] or [float(term in held) for term in correction.terms]
    return sum(alike) / max(1, len(alike))


def _method(asked: Fusion, outcome: SearchOutcome) -> FusionMethod:
    if outcome.text_count and not outcome.vector_count:
        return FusionMethod.TEXT_ONLY
    if outcome.vector_count and not outcome.text_count:
        return FusionMethod.VECTOR_ONLY
    return FusionMethod.RRF if asked is Fusion.RRF else FusionMethod.WEIGHTED_SUM


def highlighted(content: str, terms: tuple[str, ...]) -> str:
    """A text as HTML: words of the question between `<mark>` and `</mark>`, and no other markup."""
    parts: list[Markup] = []
    done = 0
    for start, end in highlight_spans(content, terms):
        parts += (escape(content[done:start]), Markup("<mark>"))
        parts += (escape(content[start:end]), Markup("</mark>"))
        done = end
    return str(Markup("").join([*parts, escape(content[done:])]))
