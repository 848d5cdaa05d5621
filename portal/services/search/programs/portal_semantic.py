"""`semantic_search` over the portal's own documents for a user, as one search of the engine."""

from __future__ import annotations

import time
from typing import Literal

from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import (
    Fusion,
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchOutcome,
    SearchRequest,
    Unit,
)
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE, MODEL_NOT_INDEXED, VECTOR_UNAVAILABLE
from portal.domain.search.fusion import RRF_K
from portal.domain.search.semantic import HybridStatus, SemanticOutcome, SemanticResult
from portal.errors import EmbedderUnavailable, VectorStoreDisabled
from portal.services import Services
from portal.services.search import engine
from portal.services.search.programs import semantic
from portal.store.search.found_chunks import WholeChunk, read_whole_chunks
from portal.store.search.keywords import index as keyword_index
from portal.text.characters.scripts import has_visible_text

BACKEND = "postgresql"
_LEGS = {
    EmbedderUnavailable.code: "embedding",
    VECTOR_UNAVAILABLE: "dense",
    KEYWORD_UNAVAILABLE: "sparse",
}


def semantic_search(
    services: Services,
    user: User,
    query: str,
    *,
    limit: int,
    threshold: float | None = None,
    content_type: str | None = None,
    scope: AskScope | None = None,
) -> SemanticOutcome:
    """Return the best chunks among those that the user may see and has switched on, as
    `SemanticSearch.search` does. The query is plain text. Raises VectorStoreDisabled, NotFound for
    what the user may not see in the scope, EmbedderUnavailable, Unavailable."""
    if not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    is_hybrid = status(services).is_enabled
    if not has_visible_text(query):
        return SemanticOutcome((), "none", is_hybrid)
    started = time.perf_counter()
    limit = limit if limit >= 1 else semantic.DEFAULT_LIMIT
    leg_limit = limit * semantic.CANDIDATES_PER_RESULT if is_hybrid else limit
    request = SearchRequest(
        query,
        mode=SearchMode.HYBRID if is_hybrid else SearchMode.VECTOR,
        top_n=2 * leg_limit,  # The threshold applies to the hits of both legs.
        leg_limit=leg_limit,
        fusion=Fusion.RRF,
        rrf_k=RRF_K,
        operators=False,
        content_type=content_type,
        scope=scope,
        one_hit_per=Unit.CHUNK,
        as_shown=True,
    )
    found = engine.search(services, user, request)
    degraded = tuple(
        EmbedderUnavailable.code if code == MODEL_NOT_INDEXED else code for code in found.degraded
    )
    if not is_hybrid and degraded:
        raise EmbedderUnavailable("it is still being loaded")
    with services.database.read() as session:
        stored = read_whole_chunks(session, user, [hit.chunk_id for hit in found.hits])
    if threshold is not None and EmbedderUnavailable.code in degraded:
        # No hit has a similarity, and dropping all would leave nothing to fall back to.
        degraded, threshold = (*degraded, semantic.THRESHOLD_NOT_APPLIED), None
    results = [
        _result(hit, stored[hit.chunk_id], is_hybrid)
        for hit in found.hits
        if hit.chunk_id in stored
    ]
    outcome = SemanticOutcome(
        semantic.best(results, threshold, limit), _method(is_hybrid, degraded), is_hybrid, degraded
    )
    _log_legs(found, degraded, leg_limit)
    semantic.log_finished(BACKEND, outcome, limit, threshold, started)
    return outcome


def status(services: Services) -> HybridStatus:
    """Return whether searches are hybrid right now, and why not if they should be."""
    with services.database.ranking_words(), services.database.driver() as reader:
        keywords = keyword_index.read_state(reader, wanted=services.settings.search.keyword_backend)
    is_requested = services.settings.hybrid_semantic_search
    has_words = keywords.backend is not KeywordBackend.OFF
    reason = KEYWORD_UNAVAILABLE if is_requested and not has_words else None
    found = HybridStatus(BACKEND, is_requested, is_requested and has_words, reason)
    semantic.announce(found)
    return found


def _result(hit: SearchHit, stored: WholeChunk, is_hybrid: bool) -> SemanticResult:
    ranks = {
        "rrf_score": hit.score,
        "dense_rank": hit.vector_rank,
        "sparse_rank": hit.text_rank,
    }
    return SemanticResult(
        id=str(stored.id),
        document_id=str(stored.document_id),
        content=stored.content,
        similarity=hit.vector_score,
        metadata=stored.metadata | {"similarity": hit.vector_score} | (ranks if is_hybrid else {}),
    )


def _method(is_hybrid: bool, degraded: tuple[str, ...]) -> Literal["dense", "sparse", "hybrid"]:
    if not is_hybrid or KEYWORD_UNAVAILABLE in degraded:
        return "dense"
    is_sparse = {EmbedderUnavailable.code, VECTOR_UNAVAILABLE} & set(degraded)
    return "sparse" if is_sparse else "hybrid"


def _log_legs(found: SearchOutcome, degraded: tuple[str, ...], leg_limit: int) -> None:
    for code in degraded:
        if code in _LEGS:
            semantic.log.error("semantic_search_leg_failed", backend=BACKEND, leg=_LEGS[code])
    semantic.log.info(
        "semantic_search_legs",
        backend=BACKEND,
        dense=found.vector_count,
        sparse=found.text_count,
        candidates=leg_limit,
    )
    both = found.vector_count + found.text_count
    semantic.log.info(
        "semantic_search_merged",
        backend=BACKEND,
        unique=found.total_count,
        merged=both,
        in_both=both - found.total_count,
    )
