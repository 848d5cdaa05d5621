"""BM25 over a small part of the corpus, with the statistics of an index.

The index of pg_textsearch can only be read from its best row down, and scoring a row without it
costs a third of a millisecond. Neither suits the few chunks of a narrow selection, so:

- up to some hundred chunks are fetched, document by document, and scored here (`term_postings`),
  with the weights that the extension itself gives the words (`bm25_weights`): the scores are those
  of the index;
- for more chunks the best rows of the index are read, enough that a sufficient number of them is in
  the selection, and more when there were too few.

A user's own private chunks are in no index that the user is searched with: they are scored here too
(`best_of_private`), with the weights that words have in shared chunks, and merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from psycopg.rows import tuple_row
from sqlalchemy import TextClause, text

from portal.store.binary_parameters import UuidsParameter
from portal.store.search.bm25_weights import weigh
from portal.store.search.enabled_sets import EnabledSet
from portal.store.search.keyword_index import ALL_CHUNKS, SHARED_CHUNKS, WordIndex
from portal.store.search.term_postings import Bm25Shape, KeptPostings, TermPostings, WordWeights
from portal.store.search.visible_corpus import VisibleCorpus
from portal.store.statements import Planner, Reader, fetch, fetch_under
from portal.text.terms.analyser import tsquery_or

# Costs of the two methods in microseconds, measured at 50,000 chunks: of a chunk that is fetched
# and scored here, and of a row that is read from the index.
_FETCH_COST = 15.0
_INDEX_ROW_COST = 2.0
# Rows read per row wanted, because a selection is not a random sample.
_MARGIN = 1.5
_MORE = 6


class Scored(NamedTuple):
    chunk_id: UUID
    document_id: UUID
    bm25: float


# The binds that pass the result to the search statement, in the order of `Scored`.
KEYWORD_ARRAYS = ("keyword_chunks", "keyword_documents", "keyword_scores")


def best_of_selection(
    reader: Reader,
    words: Sequence[str],
    enabled: EnabledSet,
    *,
    shape: Bm25Shape,
    total_chunks: int,
    limit: int,
    enough: int,
    settings: Planner,
    kept: CachedPostings,
    corpus: VisibleCorpus | None = None,
    private: Callable[[], Sequence[Scored]] = tuple,
    weighed: WordWeights | None = None,
) -> list[Scored]:
    """Return the best chunks of an enabled set by BM25: all that match, or `limit`, or, where
    finding more would cost too much, at least the best `enough`. `settings` are the planner's.

    With a `corpus`, words are weighted by shared chunks, and `private` returns the best of the
    user's own private ones, which are not in that index; without one, by all `total_chunks`.
    Weights that the index gave before are in `weighed`.
    """
    if not words or not enabled.chunk_count:
        return []
    index = ALL_CHUNKS if corpus is None else SHARED_CHUNKS
    rows = _rows_to_read(enabled, total_chunks, limit)
    if enabled.chunk_count * _FETCH_COST <= rows * _INDEX_ROW_COST:
        return _score_all(
            reader,
            words,
            enabled,
            shape,
            limit,
            kept=kept,
            corpus=corpus,
            weighed=weighed,
        )
    found = best_of_index(
        reader,
        words,
        *_is_in(enabled),
        rows=rows,
        limit=limit,
        enough=min(enough, enabled.chunk_count),
        settings=settings,
        index=index,
    )
    return merge(found, private(), limit=limit)


def merge(found: Sequence[Scored], others: Sequence[Scored], *, limit: int) -> list[Scored]:
    """Merge both results, best first."""
    return sorted((*found, *others), key=lambda one: (-one.bm25, one.chunk_id))[:limit]


def _is_in(enabled: EnabledSet) -> tuple[str, dict[str, Any]]:
    """Return the selection for `best_of_index`, as an expression and its binds."""
    name = "chunk_id" if enabled.of_chunks else "job_id"
    return f"{name} = ANY(CAST(:ids AS uuid[]))", {"ids": UuidsParameter(enabled.ids or "")}


def _rows_to_read(enabled: EnabledSet, total_chunks: int, limit: int) -> int:
    share = enabled.chunk_count / max(total_chunks, enabled.chunk_count)
    return min(max(total_chunks, 1), math.ceil(limit * _MARGIN / share))


# --- few chunks: fetched and scored here ----------------------------------------------------------

_TERMS = {
    key: text(
        f"""
        SELECT CAST(c.{key} AS text), c.id, c.document_id, c.terms FROM document_chunks c
        WHERE c.{key} = ANY(CAST(:ids AS uuid[]))
        ORDER BY 1
        """
    )
    for key in ("id", "job_id")
}


@dataclass(frozen=True, slots=True)
class CachedPostings:
    """The process's cache of postings, and the version of the chunks that they must be of."""

    cache: KeptPostings
    version: Hashable

    def of(self, reader: Reader, enabled: EnabledSet) -> TermPostings:
        """Return the postings of a small enabled set."""

        def load(names: list[str]) -> dict[str, TermPostings]:
            rows = fetch(reader, _TERMS[_key(enabled)], {"ids": names}, tuple_row)
            return {
                name: TermPostings.of([row[1:] for row in of_name])
                for name, of_name in groupby(rows, key=itemgetter(0))
            }

        names = (enabled.ids or "").strip("{}").split(",")
        return self.cache.get(self.version, names, load)


def _score_all(
    reader: Reader,
    words: Sequence[str],
    enabled: EnabledSet,
    shape: Bm25Shape,
    limit: int,
    *,
    kept: CachedPostings,
    corpus: VisibleCorpus | None = None,
    weighed: WordWeights | None = None,
) -> list[Scored]:
    weights, mean_length = weigh(reader, words, shape, corpus, weighed)
    if not weights:
        return []
    return _best_of_postings(kept.of(reader, enabled), weights, mean_length, shape, limit)


def _best_of_postings(
    postings: TermPostings,
    weights: Mapping[str, float],
    mean_length: float | None,
    shape: Bm25Shape,
    limit: int,
) -> list[Scored]:
    scores = postings.bm25(weights, mean_length or postings.mean_length, shape)
    found = [
        Scored(postings.chunk_ids[place], postings.document_ids[place], float(scores[place]))
        for place in np.flatnonzero(scores > 0).tolist()
    ]
    found.sort(key=lambda one: (-one.bm25, one.chunk_id))
    return found[:limit]


# --- a user's own private chunks ------------------------------------------------------------------

# Up to this many private chunks are cached; of more, those that match are fetched for each search,
# ordered by a rank without statistics.
_MAX_KEPT = 2_000
_OFFERED = 5

_MATCHING = {
    key: text(
        f"""
        SELECT c.id, c.document_id, c.terms
        FROM document_chunks c,
             (SELECT to_tsquery('simple', :query) AS query OFFSET 0) asked
        WHERE c.{key} = ANY(CAST(:ids AS uuid[])) AND c.terms_vector @@ asked.query
        ORDER BY ts_rank(c.terms_vector, asked.query) DESC, c.id
        LIMIT :limit
        """
    )
    for key in ("id", "job_id")
}


def best_of_private(
    reader: Reader,
    words: Sequence[str],
    enabled: EnabledSet,
    *,
    shape: Bm25Shape,
    corpus: VisibleCorpus,
    limit: int,
    kept: CachedPostings,
    weighed: WordWeights | None = None,
) -> list[Scored]:
    """Return the best of a user's own private chunks by BM25, with the weights of `corpus`."""
    if not words or not enabled.chunk_count:
        return []
    if enabled.chunk_count <= _MAX_KEPT:
        return _score_all(
            reader,
            words,
            enabled,
            shape,
            limit,
            kept=kept,
            corpus=corpus,
            weighed=weighed,
        )
    weights, mean_length = weigh(reader, words, shape, corpus, weighed)
    binds = {"ids": enabled.ids, "query": tsquery_or(words), "limit": limit * _OFFERED}
    rows = fetch(reader, _MATCHING[_key(enabled)], binds, tuple_row)
    return _best_of_postings(TermPostings.of(rows), weights, mean_length, shape, limit)


# --- more: the best rows of the index, as far as they are in the selection ------------------------

# The rows are read from the index in a derived table of their own, without any condition:
# pg_textsearch then knows how many are wanted and skips rows that cannot be among them. The first
# row is returned even if it is not in the selection, to carry the number of matches.
_IS_IN, _MATCHED = 3, 4


@lru_cache(maxsize=128)
def _filtered(is_in: str, index: WordIndex) -> TextClause:
    return text(
        f"""
        SELECT chunk_id, document_id, -distance AS bm25, is_in, matched
        FROM (
            SELECT chunk_id, document_id, distance, {is_in} AS is_in,
                   count(*) OVER () AS matched,
                   row_number() OVER (ORDER BY distance, chunk_id) AS place
            FROM (
                SELECT c.{index.chunk_id} AS chunk_id, c.job_id, c.document_id,
                       c.terms <@> to_bm25query(:words, '{index.name}') AS distance
                FROM {index.table} c
                ORDER BY c.terms <@> to_bm25query(:words_again, '{index.name}')
                LIMIT :rows
            ) best
            WHERE distance < 0
        ) matching
        WHERE is_in OR place = 1
        ORDER BY distance, chunk_id
        LIMIT :limit + 1
        """
    )


def best_of_index(
    reader: Reader,
    words: Sequence[str],
    is_in: str,
    binds: Mapping[str, Any],
    *,
    rows: int,
    limit: int,
    enough: int,
    settings: Planner,
    index: WordIndex = ALL_CHUNKS,
) -> list[Scored]:
    """Return the index's best chunks in a selection: `limit`, or all that match, or at least the
    best `enough`. `is_in` is an expression, with `binds`, of the chunk's `chunk_id`, `job_id` and
    `document_id`. First the best `rows` are read, then more as long as those are too few."""
    statement, question = _filtered(is_in, index), " ".join(words)
    binds = {**binds, "words": question, "words_again": question, "limit": limit}
    while True:
        read = fetch_under(reader, settings, statement, binds | {"rows": rows}, tuple_row)
        found = [Scored(*row[:3]) for row in read if row[_IS_IN]]
        is_exhausted = not read or read[0][_MATCHED] < rows
        if len(found) >= enough or is_exhausted:
            return found[:limit]
        rows *= _MORE


def _key(enabled: EnabledSet) -> str:
    return "id" if enabled.of_chunks else "job_id"


def as_arrays(found: Sequence[Scored]) -> dict[str, Any]:
    """Convert the result to arrays, which the search statement takes as its keyword leg."""
    chunks, documents, scores = zip(*found, strict=True) if found else ((), (), ())
    arrays = UuidsParameter(chunks), UuidsParameter(documents), list(scores)
    return dict(zip(KEYWORD_ARRAYS, arrays, strict=True))
