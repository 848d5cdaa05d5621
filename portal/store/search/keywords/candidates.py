"""BM25 over a small part of the corpus, with the statistics of an index.

The index of pg_textsearch can only be read from its best row down, and scoring a row without it
costs a third of a millisecond. Neither suits the few chunks of a narrow selection, so:

- up to some hundred chunks are fetched, document by document, and scored here (`term_postings`),
  with the weights that the extension itself gives the words (`weights`): the scores are those
  of the index;
- for more chunks the best rows of the index are read, enough that a sufficient number of them is in
  the selection, and more when there were too few. Each such search also fetches some chunks, until
  all are cached and can be scored here.

A user's own private chunks are not in the index that the user's searches use: they are scored here
too (`best_of_private`), with the weights that words have in shared chunks, and merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause, text

from portal.domain.search.bm25 import ALL_CHUNKS, SHARED_CHUNKS, Bm25Index, Bm25Parameters
from portal.store.binary_parameters import UuidsParameter
from portal.store.search.keywords.weights import weigh
from portal.store.search.selection.enabled import EnabledSet
from portal.store.search.selection.row_cache import RowCache
from portal.store.search.selection.term_postings import (
    BYTES_PER_CHUNK,
    WORDS_OF_CHUNKS,
    WORDS_OF_JOBS,
    TermPostings,
    WordWeights,
)
from portal.store.search.selection.visible_corpus import VisibleCorpus
from portal.store.statements import Planner, Reader, fetch, fetch_under
from portal.text.terms.analyser import tsquery_or

# Costs in microseconds, measured at 50,000 chunks: of a chunk that is fetched, of one that is
# cached and scored here, and of a row that is read from the index.
_FETCH_COST = 15.0
_SCORE_COST = 0.05
_INDEX_ROW_COST = 2.0
# Cost that a search may spend on fetching chunks for later searches, as a share of the cost of
# reading the index.
_AHEAD = 0.5
# Rows read per row wanted, because a selection is not a random sample.
_MARGIN = 1.5
_MORE = 6
# Up to this many private chunks are cached; if there are more, the matching ones are fetched for
# each search, ordered by a rank without statistics.
_MAX_KEPT = 2_000
_OFFERED = 5


class Scored(NamedTuple):
    chunk_id: UUID
    document_id: UUID
    bm25: float


# The binds that pass the result to the search statement, in the order of `Scored`.
KEYWORD_ARRAYS = ("keyword_chunks", "keyword_documents", "keyword_scores")


@dataclass(frozen=True, slots=True)
class KeywordScorer:
    """The words of a query, the caches for them, and how to find their best `limit` chunks with the
    statistics of an index.

    With a `corpus`, words are weighted by shared chunks, without one by all chunks. `version` is
    that of the chunks.
    """

    reader: Reader
    words: Sequence[str]
    parameters: Bm25Parameters
    limit: int
    corpus: VisibleCorpus | None = None
    version: Hashable = None
    weights: WordWeights = field(default_factory=WordWeights)
    postings: RowCache[TermPostings] = field(default_factory=lambda: RowCache(0))

    def best_of_selection(
        self,
        enabled: EnabledSet,
        *,
        total_chunks: int,
        enough: int,
        settings: Planner,
        private: Callable[[], Sequence[Scored]] = tuple,
    ) -> list[Scored]:
        """Return the best chunks of an enabled set by BM25: all that match, or `limit`, or, if
        finding more would cost too much, at least the best `enough`. `settings` are the planner's,
        `private` returns the best of the user's private chunks, which are not in the index."""
        if not self.words or not enabled.chunk_count:
            return []
        share = enabled.chunk_count / max(total_chunks, enabled.chunk_count)
        rows = min(max(total_chunks, 1), math.ceil(self.limit * _MARGIN / share))
        index_cost = rows * _INDEX_ROW_COST
        if enabled.chunk_count * _FETCH_COST <= index_cost:
            return self.best_of_all(enabled)
        cached = None
        if enabled.chunk_count * _SCORE_COST <= index_cost:
            cached = self._cached(enabled, index_cost * _AHEAD / _FETCH_COST)
        if cached is not None:
            return self._best_of(lambda: cached)
        found = best_of_index(
            self.reader,
            self.words,
            *_is_in(enabled),
            rows=rows,
            limit=self.limit,
            enough=min(enough, enabled.chunk_count),
            settings=settings,
            index=ALL_CHUNKS if self.corpus is None else SHARED_CHUNKS,
        )
        return _best([*found, *private()], self.limit)

    def best_of_all(self, enabled: EnabledSet) -> list[Scored]:
        """Return the best of a small enabled set, each of whose chunks is scored."""
        source = WORDS_OF_CHUNKS if enabled.of_chunks else WORDS_OF_JOBS
        return self._best_of(
            lambda: self.postings.get(self.reader, source, enabled.ids or "", self.version)
        )

    def _cached(self, enabled: EnabledSet, ahead: float) -> TermPostings | None:
        """Return the words of all chunks if they are cached, otherwise fetch those of about `ahead`
        for the next search."""
        # Listed chunks are rarely the same twice.
        if enabled.of_chunks or enabled.chunk_count * BYTES_PER_CHUNK > self.postings.max_bytes:
            return None
        share = min(1.0, ahead / enabled.chunk_count)
        return self.postings.get_if_cached(
            self.reader,
            WORDS_OF_JOBS,
            enabled.ids or "",
            self.version,
            max_read=math.ceil(share * enabled.document_count),
        )

    def best_of_private(self, enabled: EnabledSet) -> list[Scored]:
        """Return the best of a user's own private chunks."""
        if not self.words or not enabled.chunk_count:
            return []
        if enabled.chunk_count <= _MAX_KEPT:
            return self.best_of_all(enabled)
        binds = {
            "ids": enabled.ids,
            "query": tsquery_or(self.words),
            "limit": self.limit * _OFFERED,
        }
        statement = _MATCHING[enabled.of_chunks]
        return self._best_of(lambda: TermPostings.of(fetch(self.reader, statement, binds)))

    def _best_of(self, load: Callable[[], TermPostings]) -> list[Scored]:
        weights, mean_length = weigh(
            self.reader, self.words, self.parameters, self.corpus, self.weights
        )
        if not weights:
            return []
        postings = load()
        scores = postings.bm25(weights, mean_length or postings.mean_length, self.parameters)
        found = [
            Scored(postings.chunk_ids[place], postings.document_ids[place], float(scores[place]))
            for place in _best_places(scores, self.limit)
        ]
        return _best(found, self.limit)


_MATCHING = [
    text(
        f"""
        SELECT c.id, c.document_id, c.terms
        FROM document_chunks c,
             (SELECT to_tsquery('simple', :query) AS query OFFSET 0) asked
        WHERE c.{key} = ANY(CAST(:ids AS uuid[])) AND c.terms_vector @@ asked.query
        ORDER BY ts_rank(c.terms_vector, asked.query) DESC, c.id
        LIMIT :limit
        """
    )
    for key in ("job_id", "id")
]


def _best_places(scores: NDArray[np.float64], limit: int) -> list[int]:
    """Return the places of the best `limit` scores above 0, and of others that equal the last."""
    places = np.flatnonzero(scores > 0)
    if len(places) > limit:
        last = np.partition(scores, -limit)[-limit]
        places = np.flatnonzero(scores >= last)
    found: list[int] = places.tolist()
    return found


def _best(found: list[Scored], limit: int) -> list[Scored]:
    return sorted(found, key=lambda one: (-one.bm25, one.chunk_id))[:limit]


def _is_in(enabled: EnabledSet) -> tuple[str, dict[str, Any]]:
    """Return the selection for `best_of_index`, as an expression and its binds."""
    name = "chunk_id" if enabled.of_chunks else "job_id"
    return f"{name} = ANY(CAST(:ids AS uuid[]))", {"ids": UuidsParameter(enabled.ids or "")}


# --- more: the best rows of the index, as far as they are in the selection ------------------------

# The rows are read from the index in their own derived table, without any condition:
# pg_textsearch then knows how many are wanted and skips rows that cannot be among them. The first
# row is returned even if it is not in the selection, to carry the number of matches.
_IS_IN, _MATCHED = 3, 4


@lru_cache(maxsize=128)
def _filtered(is_in: str, index: Bm25Index) -> TextClause:
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
    index: Bm25Index = ALL_CHUNKS,
) -> list[Scored]:
    """Return the index's best chunks in a selection: `limit`, or all that match, or at least the
    best `enough`. `is_in` is an expression, with `binds`, of the chunk's `chunk_id`, `job_id` and
    `document_id`. First the best `rows` are read, then more as long as those are too few."""
    statement, question = _filtered(is_in, index), " ".join(words)
    binds = {**binds, "words": question, "words_again": question, "limit": limit}
    while True:
        read = fetch_under(reader, settings, statement, binds | {"rows": rows})
        found = [Scored(*row[:3]) for row in read if row[_IS_IN]]
        is_exhausted = not read or read[0][_MATCHED] < rows
        if len(found) >= enough or is_exhausted:
            return found[:limit]
        rows *= _MORE


def as_arrays(found: Sequence[Scored]) -> dict[str, Any]:
    """Convert the result to arrays, which the search statement takes as its keyword leg."""
    chunks, documents, scores = zip(*found, strict=True) if found else ((), (), ())
    arrays = UuidsParameter(chunks), UuidsParameter(documents), list(scores)
    return dict(zip(KEYWORD_ARRAYS, arrays, strict=True))
