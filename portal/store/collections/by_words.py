"""Find the records of a program's collection that match words best, by the index of all chunks.

The session must be from `Database.read`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.search.bm25 import Bm25Parameters
from portal.domain.vector_collections import RecordFilter
from portal.settings import SearchSettings
from portal.store.collections.reads import LIVE, condition_of
from portal.store.collections.rows import VectorCollection
from portal.store.search.keywords.candidates import KeywordScorer, Scored, best_of_index
from portal.store.search.keywords.index import COVER_DENSITY
from portal.store.search.selection.enabled import EnabledSet
from portal.text.terms.analyser import tsquery_or

# The first read from the index is this many times the limit.
_FIRST_READ = 2
_PLANNER = {
    "plan_cache_mode": "force_custom_plan",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


def best_by_words(
    session: Session,
    collection: VectorCollection,
    words: Sequence[str],
    *,
    wanted: RecordFilter,
    chunks: EnabledSet | None,
    parameters: Bm25Parameters,
    total_chunks: int,
    limit: int,
    enough: int,
) -> list[Scored]:
    """Return the best matching records by BM25: all, or `limit`, or at least `enough` if more would
    cost too much. `words` are terms of the analyser; `chunks` are those that match the filter, if
    they were looked up."""
    if not words:
        return []
    if chunks is not None and chunks.ids is not None:
        # A collection has no version to cache words by.
        own = KeywordScorer(session, words, parameters, limit)
        return own.best_of_selection(
            chunks, total_chunks=total_chunks, enough=enough, settings=_PLANNER
        )
    binds: dict[str, Any] = {"collection": collection.id}
    matches = f"""
        EXISTS (SELECT FROM document_chunks c JOIN documents d ON {LIVE}
                WHERE c.id = best.chunk_id AND c.collection_id = :collection
                      {condition_of(wanted, binds)})
    """
    return best_of_index(
        session,
        words,
        matches,
        binds,
        rows=_FIRST_READ * limit,
        limit=limit,
        enough=enough,
        settings=_PLANNER,
    )


def best_by_cover_density(
    session: Session,
    collection: VectorCollection,
    words: Sequence[str],
    *,
    wanted: RecordFilter,
    limit: int,
    search: SearchSettings,
) -> list[Scored]:
    """Return the best matching records by `ts_rank_cd`, for servers without BM25."""
    if not words:
        return []
    binds: dict[str, Any] = {
        "collection": collection.id,
        "words": tsquery_or(words),
        "label_weights": list(search.text.weights),
        "normalization": search.text.normalization,
        "limit": limit,
    }
    query = f"""
        SELECT c.id, c.document_id, {COVER_DENSITY} AS rank
        FROM document_chunks c JOIN documents d ON {LIVE}
        WHERE c.collection_id = :collection {condition_of(wanted, binds)}
          AND c.terms_vector @@ to_tsquery('simple', :words)
        ORDER BY rank DESC, c.id LIMIT :limit
    """
    return [Scored(*row) for row in session.execute(text(query), binds)]
