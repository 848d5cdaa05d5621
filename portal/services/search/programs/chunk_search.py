"""Chunk search for programs: every chunk on its own, with scores that can be reproduced.

This is the portal's own search (`engine`) without extras: the query is plain text, near-identical
chunks are not grouped, and the scores are the model's uncorrected cosine and BM25, so that their
weighted sum is the combined score. Options missing from the request default to what administrators
configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from markupsafe import Markup, escape

from portal.domain.deadlines import Deadline
from portal.domain.documents.chunks import JobChunk
from portal.domain.people import User
from portal.domain.search import (
    Correction,
    Fusion,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Unit,
    Weights,
)
from portal.domain.search.chunk_search import (
    FUSION_NAMES,
    FoundChunk,
    FoundChunks,
    FusionMethod,
    HybridQuery,
    SemanticQuery,
    Within,
)
from portal.errors import (
    InvalidQueryVector,
    NoEmbedding,
    NotFound,
    Unavailable,
    VectorStoreDisabled,
)
from portal.services import Services
from portal.services.search import dynamic_config, engine
from portal.store.documents.ingestion import job_chunks
from portal.text.characters.folding import fold
from portal.text.terms.analyser import index_terms, query_terms
from portal.text.terms.highlight import highlight_spans
from portal.text.terms.spelling import likeness, words_of


def by_meaning(
    services: Services, user: User, query: SemanticQuery, *, deadline: Deadline | None = None
) -> FoundChunks:
    """Find the chunks nearest to a query or to a vector. Raises the errors of `engine.search`."""
    request = replace(
        _request(services, query.text, query.top_k, SearchMode.VECTOR, query.within),
        query_vector=query.vector,
        min_similarity=query.threshold or None,
    )
    outcome = engine.search(services, user, request, deadline=deadline)
    return _found(services, user, request, outcome)


def each_by_meaning(
    services: Services, user: User, queries: Iterable[SemanticQuery]
) -> Iterator[FoundChunks | None]:
    """Find chunks for each of several queries, in their order, within the time of one search.
    Yields None for a query that got no time, or too little. Raises the errors of `engine.search`,
    Unavailable also when the first query alone uses up the time."""
    deadline = Deadline.within(services.settings.search.statement_timeout_s)
    is_first = True
    for query in queries:
        if not is_first and deadline.is_over:
            yield None
            continue
        try:
            # The first query also waits for its embedding and, after a start, for the model to
            # load. That does not count towards its share of the search time.
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
    top_k: int | None,
    fuzzy: bool = False,
    highlight: bool = True,
    within: Within,
) -> FoundChunks:
    """Find the chunks that match the query best by BM25. Raises the errors of `engine.search`."""
    request = replace(_request(services, text, top_k, SearchMode.KEYWORD, within), fuzzy=fuzzy)
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
    """Find the best chunks by fusing meaning and words. Raises the errors of `engine.search`."""
    request = replace(
        _request(services, query.text, query.top_k, SearchMode.HYBRID, query.within),
        fusion=query.fusion,
        weights=_weights(services, query),
        rrf_k=query.rrf_k,
        min_similarity=query.threshold or None,
    )
    outcome = engine.search(services, user, request)
    return replace(_found(services, user, request, outcome), method=_method(outcome))


def _weights(services: Services, query: HybridQuery) -> Weights | None:
    """Return the weights of a query; if it has only one, the other is the configured one."""
    vector, text = query.vector_weight, query.text_weight
    if vector is None and text is None:
        return None
    if vector is None or text is None:
        with services.database.begin() as session:
            config = dynamic_config.read(session, services.settings.search)
        vector = config.semantic_weight if vector is None else vector
        text = config.bm25_weight if text is None else text
    return Weights(vector, text)


def similar(
    services: Services,
    user: User,
    chunk_id: UUID,
    *,
    top_k: int | None,
    exclude_same_job: bool = False,
    conversation_id: UUID | None = None,
) -> FoundChunks:
    """Find the chunks nearest to a searchable chunk, without that chunk.

    Raises NotFound for a chunk that the user may not see, NoEmbedding, VectorStoreDisabled.
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
    within = Within(conversation_id=conversation_id)
    request = replace(
        _request(services, "", top_k, SearchMode.VECTOR, within),
        query_vector=vector,
        without_chunk_id=chunk_id,
        without_job_id=chunk.job_id if exclude_same_job else None,
    )
    try:
        return _found(services, user, request, engine.search(services, user, request))
    except InvalidQueryVector as error:  # Another model was activated in between.
        raise Unavailable from error


def _request(
    services: Services, text: str, top_k: int | None, mode: SearchMode, within: Within
) -> SearchRequest:
    return SearchRequest(
        query=text,
        top_n=top_k,
        default_top_n=services.settings.search.default_top_k,
        mode=mode,
        conversation_id=within.conversation_id,
        scope=within.scope,
        operators=False,
        one_hit_per=Unit.CHUNK,
        as_shown=True,
        job_id=within.job_id,
        metadata=within.metadata,
    )


def _found(
    services: Services, user: User, request: SearchRequest, outcome: SearchOutcome
) -> FoundChunks:
    """Return the hits with their chunks, skipping those that are no longer enabled."""
    ids = [hit.chunk_id for hit in outcome.hits]
    with services.database.begin() as session:
        chunks = job_chunks.read_found(session, user, request.conversation_id, ids)
    return FoundChunks(
        items=tuple(
            FoundChunk(
                chunk=chunks[hit.chunk_id],
                cosine=hit.vector_score or 0.0,
                text_score=hit.text_score,
                combined=hit.score,
                parts=hit.parts,
                bm25=hit.bm25,
                vector_rank=hit.vector_rank,
                text_rank=hit.text_rank,
            )
            for hit in outcome.hits
            if hit.chunk_id in chunks
        ),
        degraded=outcome.degraded,
        correction=outcome.correction,
        used=outcome.used,
    )


def _similarity(chunk: JobChunk, correction: Correction) -> float:
    """Return the mean similarity, in [0, 1], of the query's words to the nearest of a chunk."""
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


def _method(outcome: SearchOutcome) -> FusionMethod:
    if outcome.text_count and not outcome.vector_count:
        return FusionMethod.TEXT_ONLY
    if outcome.vector_count and not outcome.text_count:
        return FusionMethod.VECTOR_ONLY
    return FusionMethod(FUSION_NAMES[outcome.used.fusion if outcome.used else Fusion.WEIGHTED])


def highlighted(content: str, terms: tuple[str, ...]) -> str:
    """Return a text as HTML with words of the query in `<mark>`, and no other markup."""
    parts: list[Markup] = []
    done = 0
    for start, end in highlight_spans(content, terms):
        parts += (escape(content[done:start]), Markup("<mark>"))
        parts += (escape(content[start:end]), Markup("</mark>"))
        done = end
    return str(Markup("").join([*parts, escape(content[done:])]))
