"""`semantic_search`: by meaning, or by meaning and keywords, fused by reciprocal ranks.

The logic that all storage backends share: which legs run, what happens when one fails, how their
lists are merged, and what is logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import structlog

from portal.domain.embedding import Vector
from portal.domain.search import Fusion
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE, VECTOR_UNAVAILABLE
from portal.domain.search.fusion import RRF_K, Offer, Ranked, Ranking, fuse
from portal.domain.search.semantic import (
    HybridStatus,
    QueryEmbedder,
    SemanticBackend,
    SemanticHit,
    SemanticOutcome,
    SemanticResult,
)
from portal.errors import EmbedderUnavailable, Unavailable
from portal.text.characters.scripts import has_visible_text

log = structlog.get_logger(__name__)

DEFAULT_LIMIT = 5
# Candidates of each leg for each result: a chunk that one leg ranks low may rank first in both.
CANDIDATES_PER_RESULT = 2

THRESHOLD_NOT_APPLIED = "threshold_not_applied"

_Found = Sequence[SemanticHit]
_Given = TypeVar("_Given")


@dataclass(frozen=True, slots=True)
class _Asked:
    query: str
    limit: int
    threshold: float | None
    content_type: str | None


class SemanticSearch:
    """Search over one backend. `hybrid` is what was requested; `status` says what is in effect."""

    def __init__(self, backend: SemanticBackend, embedder: QueryEmbedder, *, hybrid: bool) -> None:
        self._backend = backend
        self._embedder = embedder
        self._wants_hybrid = hybrid
        announce(self.status)

    @property
    def status(self) -> HybridStatus:
        """Return whether searches are hybrid now: a keyword index may come and go."""
        wanted = self._wants_hybrid
        reason = self._backend.why_no_sparse() if wanted else None
        return HybridStatus(self._backend.name, wanted, wanted and reason is None, reason)

    def is_hybrid_search_enabled(self) -> bool:
        return self.status.is_enabled

    def semantic_search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> list[SemanticResult]:
        """Return the results of `search`."""
        return list(self.search(query, limit, threshold, content_type).results)

    def search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> SemanticOutcome:
        """Return the best chunks: at most `limit` (values below 1 mean 5), with a cosine of at
        least `threshold`, of this `content_type`; none for an empty query.

        A leg of a hybrid search that fails is left out. Raises the errors of the embedder or the
        backend when there is no other leg, Unavailable when both fail.
        """
        status = self.status
        announce(status)
        if not has_visible_text(query):
            return SemanticOutcome((), "none", status.is_enabled)
        started = time.perf_counter()
        asked = _Asked(query, limit if limit >= 1 else DEFAULT_LIMIT, threshold, content_type)
        outcome = self._hybrid(asked) if status.is_enabled else self._dense(asked)
        log_finished(self._backend.name, outcome, asked.limit, asked.threshold, started)
        return outcome

    def _dense(self, asked: _Asked) -> SemanticOutcome:
        """Search by meaning alone."""
        try:
            vector = self._embedder.embed_query(asked.query)
            found = self._backend.dense(vector, asked.limit, asked.content_type)
        except Exception as error:
            self._log_failure("dense", error)
            raise
        log.info("semantic_search_legs", backend=self._backend.name, dense=len(found))
        results = [_result(chunk) for chunk in found]
        kept = best(results, asked.threshold, asked.limit)
        return SemanticOutcome(kept, "dense", is_hybrid_enabled=False)

    def _hybrid(self, asked: _Asked) -> SemanticOutcome:
        """Search by meaning and keywords."""
        vector = self._attempt("embedding", lambda: self._embedder.embed_query(asked.query))
        dense, sparse = self._legs(vector, asked)
        if dense is None and sparse is None:
            raise Unavailable
        chunks = self._merged(vector, dense or (), sparse or ())
        degraded = _degraded(vector, dense, sparse)
        threshold = asked.threshold
        if threshold is not None and vector is None:
            # No hit has a similarity, and dropping all would leave nothing to fall back to.
            degraded, threshold = (*degraded, THRESHOLD_NOT_APPLIED), None
        results = [
            _result(
                chunks[one.offer.id],
                rrf_score=one.score,
                dense_rank=one.offer.vector_rank,
                sparse_rank=one.offer.text_rank,
            )
            for one in rank(dense or (), sparse or (), chunks)
        ]
        kept = best(results, threshold, asked.limit)
        return SemanticOutcome(kept, _method(dense, sparse), True, degraded)

    def _legs(self, vector: Vector | None, asked: _Asked) -> tuple[_Found | None, _Found | None]:
        """Return the hits of each leg, None for a leg that failed."""
        backend, content_type = self._backend, asked.content_type
        wanted = asked.limit * CANDIDATES_PER_RESULT
        dense = None
        if vector is not None:
            dense = self._attempt("dense", lambda: backend.dense(vector, wanted, content_type))
        sparse = self._attempt("sparse", lambda: backend.sparse(asked.query, wanted, content_type))
        log.info(
            "semantic_search_legs",
            backend=backend.name,
            dense=None if dense is None else len(dense),
            sparse=None if sparse is None else len(sparse),
            candidates=wanted,
        )
        return dense, sparse

    def _merged(
        self, vector: Vector | None, dense: _Found, sparse: _Found
    ) -> dict[str, SemanticHit]:
        """Merge the chunks of both lists by id, with the similarities that are known."""
        # The dense copy of a chunk in both lists wins, because it has the similarity.
        chunks = {one.id: one for one in (*sparse, *dense)}
        unknown = [one.id for one in chunks.values() if one.similarity is None]
        if vector is not None and unknown:
            known = self._attempt("similarity", lambda: self._backend.similarities(vector, unknown))
            for chunk_id, similarity in (known or {}).items():
                chunks[chunk_id] = replace(chunks[chunk_id], similarity=similarity)
        log.info(
            "semantic_search_merged",
            backend=self._backend.name,
            unique=len(chunks),
            merged=len(dense) + len(sparse),
            in_both=len({one.id for one in dense} & {one.id for one in sparse}),
        )
        return chunks

    def _attempt(self, leg: str, action: Callable[[], _Given]) -> _Given | None:
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - the other leg answers, whatever the error
            self._log_failure(leg, error)
            return None

    def _log_failure(self, leg: str, error: Exception) -> None:
        # Log the stack only: the query and the error message are private.
        log.error(
            "semantic_search_leg_failed",
            backend=self._backend.name,
            leg=leg,
            error_type=type(error).__name__,
            exc_info=error,
        )


_announced: dict[str, HybridStatus] = {}


def announce(status: HybridStatus, *, is_intended: bool = False) -> None:
    """Log how a backend is searched, once and again whenever that changes. Warns if hybrid search
    is unavailable, unless PostgreSQL is configured not to rank keywords beside meaning."""
    if _announced.get(status.backend) == status:
        return
    _announced[status.backend] = status
    is_missed = status.is_requested and not status.is_enabled
    is_missed &= not (is_intended and status.reason == KEYWORD_UNAVAILABLE)
    (log.warning if is_missed else log.info)(
        "semantic_search_configured",
        backend=status.backend,
        hybrid_requested=status.is_requested,
        hybrid_enabled=status.is_enabled,
        reason=status.reason,
        rrf_k=RRF_K,
    )


def log_finished(
    backend: str, outcome: SemanticOutcome, limit: int, threshold: float | None, started: float
) -> None:
    log.info(
        "semantic_search_finished",
        backend=backend,
        method=outcome.method,
        results=len(outcome.results),
        limit=limit,
        threshold=threshold,
        degraded=list(outcome.degraded),
        duration_ms=round((time.perf_counter() - started) * 1000, 1),
    )


def best(
    results: Sequence[SemanticResult], threshold: float | None, limit: int
) -> tuple[SemanticResult, ...]:
    """Return the first results that are similar enough, up to the limit, in their order."""
    if threshold is not None:
        results = [
            one for one in results if one.similarity is not None and one.similarity >= threshold
        ]
    return tuple(results[:limit])


def _result(chunk: SemanticHit, **hybrid: Any) -> SemanticResult:
    return SemanticResult(
        id=chunk.id,
        document_id=chunk.document_id,
        content=chunk.content,
        similarity=chunk.similarity,
        metadata={**chunk.metadata, "similarity": chunk.similarity, **hybrid},
    )


def rank(dense: _Found, sparse: _Found, chunks: Mapping[str, SemanticHit]) -> list[Ranked]:
    """Fuse two lists by reciprocal ranks, each chunk once; `chunks` have the similarities."""
    legs = [list(dict.fromkeys(one.id for one in leg)) for leg in (dense, sparse)]
    dense_ranks, sparse_ranks = (
        {chunk_id: place for place, chunk_id in enumerate(leg, 1)} for leg in legs
    )
    offers = [
        Offer(chunk_id, dense_ranks.get(chunk_id), sparse_ranks.get(chunk_id), chunk.similarity)
        for chunk_id, chunk in chunks.items()
    ]
    return fuse(offers, Ranking(Fusion.RRF))


def _degraded(
    vector: Vector | None, dense: _Found | None, sparse: _Found | None
) -> tuple[str, ...]:
    lost = []
    if dense is None:
        lost.append(EmbedderUnavailable.code if vector is None else VECTOR_UNAVAILABLE)
    if sparse is None:
        lost.append(KEYWORD_UNAVAILABLE)
    return tuple(lost)


def _method(dense: _Found | None, sparse: _Found | None) -> Literal["dense", "sparse", "hybrid"]:
    if sparse is None:
        return "dense"
    return "sparse" if dense is None else "hybrid"
