"""Search of a program's collection by words, and by meaning and words.

Score = cosine × semantic_weight + BM25 / the best BM25 × bm25_weight, for everything that either
leg offers. The weights are the current ones of `dynamic_config`.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from portal.domain.embedding import Vector
from portal.domain.search import KeywordBackend, Weights
from portal.domain.search.bm25 import Bm25Parameters
from portal.domain.search.fusion import Offer, Ranking, fuse
from portal.domain.vector_collections import RecordFilter, StoredRecord
from portal.errors import Unavailable, existing
from portal.services.collections.nearest import ResolvedFilter, nearest, resolve_filter
from portal.services.collections.records import Collections
from portal.services.search import dynamic_config
from portal.store.collections import by_vector, reads
from portal.store.collections import rows as collection_store
from portal.store.collections.by_words import best_by_cover_density, best_by_words
from portal.store.collections.rows import VectorCollection
from portal.store.search.keywords import index as keyword_index
from portal.store.search.keywords.candidates import Scored
from portal.store.search.keywords.index import KeywordState
from portal.store.session import Session
from portal.text.terms.analyser import query_terms

# Each leg offers at least this many records, and this many times the limit.
_MIN_OFFERED = 100
_OFFERED_FACTOR = 5


def hybrid_search(
    collections: Collections,
    collection_id: UUID,
    query_vector: Vector,
    words: str,
    wanted: RecordFilter,
    *,
    limit: int,
) -> list[StoredRecord]:
    """Return the best records by both legs with their `score`, best first. If the server cannot
    rank words beside vectors, the score is the cosine alone; a missing BM25 index is logged. Raises
    InvalidInput for a vector of another length, NotFound."""
    offered = max(_MIN_OFFERED, _OFFERED_FACTOR * limit)
    with collections.database.read() as session:
        collection = existing(collection_store.find_by_id(session, collection_id))
        config = dynamic_config.read(session, collections.search)
        weights = Weights(config.semantic_weight, config.bm25_weight)
        resolved = resolve_filter(session, collections.options, collection, wanted)
        state = _read_state(session, collections)
        if state.backend is KeywordBackend.OFF:
            weights = Weights(1.0, 0.0)
        found = _by_words(
            session, collections, collection, words, resolved,
            state=state, backend=state.backend, limit=offered, enough=offered // 2
        )  # fmt: skip
        near = nearest(
            session,
            collections.options,
            collection,
            query_vector,
            resolved,
            limit=offered,
            read=by_vector.read_chunks,
        )
        offers = list({*near, *(scored.chunk_id for scored in found)})
        cosines = by_vector.cosines(session, collection, query_vector, offers)
        bm25 = {scored.chunk_id: scored.bm25 for scored in found}
        # Chunk ids are in insertion order, so of equal scores the first added comes first.
        fused = fuse(
            [
                Offer(str(chunk_id), cosine=cosine, bm25=bm25.get(chunk_id, 0.0))
                for chunk_id, cosine in cosines.items()
            ],
            Ranking(weights=weights, as_shown=True),
        )
        scores = [(UUID(ranked.offer.id), ranked.score) for ranked in fused[:limit]]
        records = reads.records_of_chunks(session, [chunk_id for chunk_id, _score in scores])
    return [
        replace(records[chunk_id], score=score) for chunk_id, score in scores if chunk_id in records
    ]


def ranks_words(collections: Collections) -> bool:
    """Return whether the server can rank records by their words now."""
    with collections.database.read() as session:
        return _read_state(session, collections).backend is not KeywordBackend.OFF


def search_by_words(
    collections: Collections, collection_id: UUID, words: str, wanted: RecordFilter, *, limit: int
) -> list[StoredRecord]:
    """Return the best records by BM25, which is their `score`, best first. Raises NotFound, and
    Unavailable if the server cannot rank words."""
    with collections.database.read() as session:
        collection = existing(collection_store.find_by_id(session, collection_id))
        state = _read_state(session, collections)
        if state.alone is KeywordBackend.OFF:
            raise Unavailable
        resolved = resolve_filter(session, collections.options, collection, wanted)
        found = _by_words(
            session, collections, collection, words, resolved,
            state=state, backend=state.alone, limit=limit, enough=limit
        )  # fmt: skip
        records = reads.records_of_chunks(session, [scored.chunk_id for scored in found])
    return [
        replace(records[scored.chunk_id], score=scored.bm25)
        for scored in found
        if scored.chunk_id in records
    ]


def _read_state(session: Session, collections: Collections) -> KeywordState:
    return keyword_index.read_state(session, wanted=collections.search.keyword_backend)


def _by_words(
    session: Session,
    collections: Collections,
    collection: VectorCollection,
    words: str,
    resolved: ResolvedFilter,
    *,
    state: KeywordState,
    backend: KeywordBackend,
    limit: int,
    enough: int,
) -> list[Scored]:
    """Return the best by BM25: `limit`, or at least `enough` if more would cost too much; none if
    the server cannot rank words."""
    settings, terms = collections.search, query_terms(words)
    if backend is KeywordBackend.OFF:
        return []
    if backend is KeywordBackend.TSVECTOR:
        return best_by_cover_density(
            session, collection, terms, wanted=resolved.wanted, limit=limit, search=settings
        )
    return best_by_words(
        session,
        collection,
        terms,
        wanted=resolved.wanted,
        chunks=resolved.chunks,
        parameters=Bm25Parameters(settings.bm25_k1, settings.bm25_b),
        total_chunks=state.chunk_count,
        limit=limit,
        enough=enough,
    )
