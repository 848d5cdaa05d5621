"""Search of a program's collection by meaning and by words (seed 000).

Score = cosine × semantic_weight + BM25 / the best BM25 × bm25_weight, for everything that either
leg offers. The weights are those of `dynamic_config` now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from portal.domain.embedding import Vector
from portal.domain.search import KeywordBackend
from portal.domain.vector_collections import Page, RecordFilter, StoredRecord
from portal.errors import NotFound
from portal.services import dynamic_config
from portal.services.vector_collections import Collections, nearest
from portal.store import collection_reads, keyword_index
from portal.store import vector_collections as collection_store
from portal.store.enabled_sets import EnabledSet
from portal.store.keyword_candidates import Scored, best_of_selection
from portal.store.session import Session
from portal.store.term_postings import Bm25Shape
from portal.store.vector_collections import VectorCollection
from portal.text.analyser import query_terms

# Each leg offers at least so many, and so many times what is wanted.
_LEAST_OFFERED = 100
_OFFERED_FACTOR = 5
_PLANNER = {
    "plan_cache_mode": "force_custom_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HybridWeights:
    semantic: float
    bm25: float


def hybrid_search(
    collections: Collections,
    collection_id: UUID,
    question: Vector,
    words: str,
    wanted: RecordFilter,
    *,
    limit: int,
) -> list[StoredRecord]:
    """The best records by both, with their `score`, the best first. Without pg_textsearch by
    meaning alone, which is logged: the score is the cosine then.

    Raises InvalidInput for a vector of another length, NotFound.
    """
    offered = max(_LEAST_OFFERED, _OFFERED_FACTOR * limit)
    with collections.database.read() as session:
        collection = collection_store.find_by_id(session, collection_id)
        if collection is None:
            raise NotFound
        config = dynamic_config.read(session)
        weights = HybridWeights(config.semantic_weight, config.bm25_weight)
        found = _by_words(session, collections, collection, words, wanted, limit=offered)
    if found is None:
        log.warning(
            "hybrid search goes by meaning alone, BM25 is disabled",
            reason="pg_textsearch is not available",
            collection=collection.name,
        )
        weights, found = HybridWeights(1.0, 0.0), []
    with collections.database.begin() as session:
        near = nearest(
            session, collections, collection, question, wanted=wanted, page=Page(limit=offered)
        )
        ids = {one.chunk_id for one in found}
        ids |= set(_chunks_of(session, collection, near))
        cosines = collection_reads.cosines(session, collection, question, list(ids))
    return _fused(cosines, {one.chunk_id: one.bm25 for one in found}, weights)[:limit]


def _by_words(
    session: Session,
    collections: Collections,
    collection: VectorCollection,
    words: str,
    wanted: RecordFilter,
    *,
    limit: int,
) -> list[Scored] | None:
    """The best by BM25; None where the server cannot rank words."""
    settings = collections.search
    state = keyword_index.read_state(session, wanted=settings.keyword_backend)
    if state.backend is not KeywordBackend.PG_TEXTSEARCH:
        return None
    chunk_ids = collection_reads.find_chunks(session, collection, wanted)
    named = "{" + ",".join(map(str, chunk_ids)) + "}"
    return best_of_selection(
        session,
        query_terms(words),
        EnabledSet(len(chunk_ids), len(chunk_ids), named, of_chunks=True),
        shape=Bm25Shape(settings.bm25_k1, settings.bm25_b),
        total_chunks=state.chunk_count,
        limit=limit,
        enough=limit // 2,
        settings=_PLANNER,
    )


def _chunks_of(
    session: Session, collection: VectorCollection, records: Sequence[StoredRecord]
) -> list[UUID]:
    named = RecordFilter(ids=tuple(record.id for record in records))
    return collection_reads.find_chunks(session, collection, named)


def _fused(
    cosines: dict[UUID, tuple[float, StoredRecord]],
    bm25: dict[UUID, float],
    weights: HybridWeights,
) -> list[StoredRecord]:
    best = max(bm25.values(), default=0.0) or 1.0
    scored = [
        (cosine * weights.semantic + bm25.get(chunk_id, 0.0) / best * weights.bm25, chunk_id)
        for chunk_id, (cosine, _record) in cosines.items()
    ]
    scored.sort(key=lambda one: (-one[0], one[1]))
    return [replace(cosines[chunk_id][1], score=score) for score, chunk_id in scored]
