"""Searching: a question in, passages with scores and a calibrated confidence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from portal.domain.people import Person
from portal.domain.search import (
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Span,
    Weights,
)
from portal.embeddings.calibration import QueryStatistics
from portal.embeddings.confidence import Evidence
from portal.errors import (
    EmbedderUnavailable,
    InvalidEmbedding,
    NotFound,
    Unavailable,
    VectorStoreDisabled,
)
from portal.services import Services, dynamic_config
from portal.services.dynamic_config import DynamicConfig
from portal.store import conversations as conversation_store
from portal.store import embedding_models, keyword_index
from portal.store.keyword_index import KeywordState
from portal.store.search import (
    Candidate,
    KeywordQuery,
    Scope,
    StatementFailed,
    VectorQuery,
    find_passages,
    source_of,
    tune,
)
from portal.store.session import Session
from portal.text.analyser import query_terms, tsquery_or
from portal.text.excerpt import best_excerpt
from portal.text.scripts import has_visible_text

log = structlog.get_logger(__name__)

EXCERPT_CHARACTERS = 320
# What each leg offers to the fusion: with fewer, good passages that both legs rank middling lose.
LEAST_CANDIDATES = 50
# Confidence compares a passage with its rivals; fewer than these say too little.
LEAST_EVIDENCE = 10
KEYWORD_UNAVAILABLE = "keyword_unavailable"
VECTOR_UNAVAILABLE = "vector_unavailable"
MODEL_NOT_INDEXED = "model_not_indexed"


@dataclass(frozen=True, slots=True)
class _Plan:
    """A request with everything filled in that it left to the configuration."""

    request: SearchRequest
    config: DynamicConfig
    terms: tuple[str, ...]
    statistics: QueryStatistics | None
    degraded: tuple[str, ...]
    chunk_count: int

    @property
    def threshold(self) -> float:
        return self.request.threshold or 0.0

    @property
    def limit(self) -> int:
        return self.request.top_n or self.config.top_n

    @property
    def leg_limit(self) -> int:
        return max(LEAST_CANDIDATES, 2 * self.limit)

    @property
    def weights(self) -> Weights:
        return self.request.weights or Weights(
            vector=self.config.semantic_weight, text=self.config.bm25_weight
        )


def search(services: Services, person: Person, request: SearchRequest) -> SearchOutcome:
    """Find passages among what the person may see and has switched on, best first.

    Raises NotFound for a foreign conversation, EmbedderUnavailable when meaning alone was asked
    for and the model does not answer, VectorStoreDisabled. A leg that fails is left out and named
    in `degraded`.
    """
    if not has_visible_text(request.query):
        return SearchOutcome(request.query, (), 0, request.mode)
    if request.mode is not SearchMode.KEYWORD and not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    statistics, degraded = _embed(services, request)
    with services.database.begin() as session:
        _check_conversation(session, person, request)
        keywords = keyword_index.read_state(
            session, wanted=services.settings.search.keyword_backend
        )
        plan = _Plan(
            request=request,
            config=dynamic_config.read(session),
            terms=query_terms(request.query),
            statistics=statistics,
            degraded=degraded,
            chunk_count=keywords.chunk_count,
        )
    return _run(services, person, plan, keywords)


def _check_conversation(session: Session, person: Person, request: SearchRequest) -> None:
    if request.conversation_id is None:
        return
    if not conversation_store.belongs_to(session, request.conversation_id, person.id):
        raise NotFound


def _embed(
    services: Services, request: SearchRequest
) -> tuple[QueryStatistics | None, tuple[str, ...]]:
    """The question's vector with what is known of it, or None and why there is none."""
    if request.mode is SearchMode.KEYWORD:
        return None, ()
    try:
        vector = services.embedder.embed_query(request.query)
    except (EmbedderUnavailable, InvalidEmbedding) as error:
        if request.mode is SearchMode.VECTOR:
            raise
        log.warning("query_not_embedded", code=error.code)
        return None, (EmbedderUnavailable.code,)
    return services.calibration.query_statistics(vector, request.query), ()


def _run(services: Services, person: Person, plan: _Plan, keywords: KeywordState) -> SearchOutcome:
    """Run both legs; if that fails, each alone, so that one broken index stops no one."""
    vector_query, keyword_query, degraded = _queries(services, plan, keywords)
    attempts: list[tuple[VectorQuery | None, KeywordQuery | None, tuple[str, ...]]]
    attempts = [(vector_query, keyword_query, ())]
    if vector_query is not None and keyword_query is not None:
        attempts.append((vector_query, None, (KEYWORD_UNAVAILABLE,)))
        attempts.append((None, keyword_query, (VECTOR_UNAVAILABLE,)))
    failure: StatementFailed | None = None
    for vector, words, lost in attempts:
        if vector is None and words is None:
            break
        try:
            candidates = _find(services, person, plan, vector, words)
        except StatementFailed as error:
            log.warning("search_leg_failed", error_type=type(error.__cause__).__name__)
            failure = error
            continue
        return _outcome(services, plan, candidates, (vector, words), (*degraded, *lost))
    if failure is not None:
        raise Unavailable from failure
    return _outcome(services, plan, [], (vector_query, keyword_query), degraded)


def _queries(
    services: Services, plan: _Plan, state: KeywordState
) -> tuple[VectorQuery | None, KeywordQuery | None, tuple[str, ...]]:
    """What each leg is asked, and what the search has to do without."""
    degraded = plan.degraded
    vector: VectorQuery | None = None
    keywords: KeywordQuery | None = None
    if plan.statistics is not None:
        vector = _vector_query(services, plan, plan.statistics)
        degraded += () if vector else (MODEL_NOT_INDEXED,)
    if plan.request.mode is not SearchMode.VECTOR:
        keywords = _keyword_query(services, plan, state)
        if state.backend is KeywordBackend.OFF:
            degraded += (KEYWORD_UNAVAILABLE,)
    return vector, keywords, degraded


def _vector_query(
    services: Services, plan: _Plan, statistics: QueryStatistics
) -> VectorQuery | None:
    """None until some document was embedded with this model: vectors of two never mix."""
    with services.database.begin() as session:
        model = embedding_models.find_model(session, services.embedder.name)
    if model is None:
        return None
    # "By meaning" alone means the model's own cosine; hybrid corrects the question's vector for
    # the language it is asked in (docs/retrieval-quality.md).
    is_hybrid = plan.request.mode is SearchMode.HYBRID
    search_vector = statistics.search_vector if is_hybrid else statistics.vector
    return VectorQuery(
        model=model,
        search_vector=search_vector.tolist(),
        plain_vector=statistics.vector.tolist(),
        corrected_vector=statistics.search_vector.tolist(),
        is_corrected=is_hybrid,
        likeness_low=statistics.v_lo,
        likeness_width=statistics.v_width,
    )


def _keyword_query(services: Services, plan: _Plan, state: KeywordState) -> KeywordQuery | None:
    """None without a backend or without a word: an empty query would match every row."""
    if not plan.terms or state.backend is KeywordBackend.OFF:
        return None
    if state.backend is KeywordBackend.TSVECTOR:
        return KeywordQuery(state.backend, tsquery_or(plan.terms), text_floor=0.0)
    floor = services.calibration.text_floor(len(plan.terms), plan.chunk_count)
    return KeywordQuery(state.backend, " ".join(plan.terms), text_floor=floor)


def _find(
    services: Services,
    person: Person,
    plan: _Plan,
    vector: VectorQuery | None,
    keywords: KeywordQuery | None,
) -> list[Candidate]:
    settings = services.settings.search
    with services.database.begin() as session:
        tune(
            session,
            ef_search=settings.hnsw.ef_search,
            leg_limit=plan.leg_limit,
            timeout_s=settings.statement_timeout_s,
        )
        return find_passages(
            session,
            Scope(person, plan.request.conversation_id, plan.request.domain),
            vector=vector,
            keywords=keywords,
            fusion=plan.request.fusion or plan.config.fusion,
            weights=plan.weights,
            rrf_k=plan.config.rrf_k,
            limit=max(plan.limit, LEAST_EVIDENCE),
            leg_limit=plan.leg_limit,
            threshold=plan.threshold,
        )


def _outcome(
    services: Services,
    plan: _Plan,
    candidates: Sequence[Candidate],
    ran: tuple[VectorQuery | None, KeywordQuery | None],
    degraded: tuple[str, ...],
) -> SearchOutcome:
    confidences = _confidences(services, plan, candidates, has_bm25=_is_bm25(ran[1]))
    low_below = plan.config.confidence_threshold
    hits = tuple(
        _hit(plan, candidate, confidence, is_low=confidence < low_below)
        for candidate, confidence in list(zip(candidates, confidences, strict=True))[: plan.limit]
        if candidate.score >= plan.threshold
    )
    return SearchOutcome(
        query=plan.request.query,
        hits=hits,
        total_count=candidates[0].candidate_count if candidates else 0,
        search_method=_method(plan, ran),
        degraded=degraded,
        off_topic=bool(hits) and all(hit.low_confidence for hit in hits),
        explanation=_explanation(plan, candidates, ran) if plan.request.explain else None,
    )


def _confidences(
    services: Services, plan: _Plan, candidates: Sequence[Candidate], *, has_bm25: bool
) -> list[float]:
    """The calibrated chance of each candidate to be relevant, whatever the fusion."""
    evidence = [
        Evidence(
            document=candidate.document_id,
            language=candidate.language,
            cosine=candidate.cosine,
            corrected=candidate.likeness,
            keyword=candidate.bm25 if has_bm25 else None,
        )
        for candidate in candidates
    ]
    scale = services.calibration.text_scale(len(plan.terms), plan.chunk_count)
    return services.calibration.confidences(plan.statistics, evidence, scale)


def _explanation(
    plan: _Plan,
    candidates: Sequence[Candidate],
    ran: tuple[VectorQuery | None, KeywordQuery | None],
) -> dict[str, Any]:
    """How the search ran, for whoever asked to have it explained."""
    vector, keywords = ran
    return {
        "plan": "join",
        "fusion": (plan.request.fusion or plan.config.fusion).value,
        "weights": {"vector": plan.weights.vector, "text": plan.weights.text},
        "candidates_a_leg": plan.leg_limit,
        "candidates": candidates[0].candidate_count if candidates else 0,
        "embedding_model": vector.model.name if vector else None,
        "keyword_backend": keywords.backend.value if keywords else None,
        "terms": list(plan.terms),
    }


def _is_bm25(keywords: KeywordQuery | None) -> bool:
    """Confidence was fitted to BM25; cover density is on another scale and says nothing to it."""
    return keywords is not None and keywords.backend is KeywordBackend.PG_TEXTSEARCH


def _method(plan: _Plan, ran: tuple[VectorQuery | None, KeywordQuery | None]) -> SearchMode:
    vector, keywords = ran
    if plan.request.mode is not SearchMode.HYBRID:
        return plan.request.mode
    if vector is None:
        return SearchMode.KEYWORD
    # A question without a single word to look up was still answered by both legs' rules; a
    # server without a keyword index was not.
    return SearchMode.VECTOR if keywords is None and plan.terms else SearchMode.HYBRID


def _hit(plan: _Plan, candidate: Candidate, confidence: float, *, is_low: bool) -> SearchHit:
    excerpt = best_excerpt(candidate.content, plan.terms, EXCERPT_CHARACTERS)
    return SearchHit(
        document_id=candidate.document_id,
        chunk_id=candidate.chunk_id,
        title=candidate.title,
        excerpt=excerpt.text,
        highlights=tuple(Span(start, end) for start, end in excerpt.spans),
        page=candidate.page,
        heading=candidate.heading,
        score=candidate.score,
        vector_score=candidate.cosine,
        text_score=candidate.text_score,
        confidence=confidence,
        low_confidence=is_low,
        source=source_of(candidate),
        media_type=candidate.media_type,
        char_start=candidate.char_start,
        char_end=candidate.char_end,
    )
