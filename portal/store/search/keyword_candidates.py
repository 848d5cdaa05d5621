"""BM25 over a small part of the corpus, with the statistics of the whole.

The index of pg_textsearch can only be read from its best row down, and scoring a row without it
costs a third of a millisecond. For the few chunks of a narrow selection neither will do:

- up to some hundred chunks are fetched once and scored here (`term_postings`), with the weights
  that the extension itself gives the words (`_word_weights`): the scores are those of the index;
- of more chunks the index's best rows are taken, so many that enough of them are in the selection,
  and more when they were too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from psycopg.rows import tuple_row
from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from portal.store.search.enabled_sets import EnabledSet
from portal.store.search.keyword_index import BM25_INDEX
from portal.store.search.term_postings import Bm25Shape, TermPostings
from portal.store.search.tuning import Planner, fetch, fetch_under

# Costs of the two ways in microseconds, measured at 50,000 chunks: a chunk that is fetched and
# scored here, a row that is read from the index.
_FETCH_COST = 15.0
_INDEX_ROW_COST = 2.0
# Rows are read for this many times the wanted number, because a selection is no random sample.
_MARGIN = 1.5
_MORE = 6
# A word that no text holds: filler that makes a text longer.
_FILLER = "zzfiller"


class Scored(NamedTuple):
    chunk_id: UUID
    document_id: UUID
    bm25: float


# The binds under which the search statement takes up what was found, in the order of `Scored`.
KEYWORD_ARRAYS = ("keyword_chunks", "keyword_documents", "keyword_scores")

# Gives the postings that it is asked to compute, or those that it remembers.
Remember = Callable[[Callable[[], TermPostings]], TermPostings]


def _anew(compute: Callable[[], TermPostings]) -> TermPostings:
    """Remember nothing."""
    return compute()


def best_of_selection(
    session: Session,
    words: Sequence[str],
    enabled: EnabledSet,
    *,
    shape: Bm25Shape,
    total_chunks: int,
    limit: int,
    enough: int,
    settings: Planner,
    remember: Remember = _anew,
) -> list[Scored]:
    """The best chunks of an enabled set by BM25: all that match, or `limit`, or, where looking
    for more would cost too much, at least the best `enough`. `settings` are the planner's."""
    if not words or not enabled.chunk_count:
        return []
    rows = _rows_to_read(enabled, total_chunks, limit)
    if enabled.chunk_count * _FETCH_COST <= rows * _INDEX_ROW_COST:
        return _score_all(session, words, enabled, shape, limit, remember=remember)
    return best_of_index(
        session,
        words,
        *_is_in(enabled),
        rows=rows,
        limit=limit,
        enough=min(enough, enabled.chunk_count),
        settings=settings,
    )


def _is_in(enabled: EnabledSet) -> tuple[str, dict[str, Any]]:
    """As `best_of_index` takes a selection: an expression and its binds."""
    name = "chunk_id" if enabled.of_chunks else "job_id"
    return f"{name} = ANY(CAST(:ids AS uuid[]))", {"ids": enabled.ids}


def _rows_to_read(enabled: EnabledSet, total_chunks: int, limit: int) -> int:
    share = enabled.chunk_count / max(total_chunks, enabled.chunk_count)
    return min(max(total_chunks, 1), math.ceil(limit * _MARGIN / share))


# --- few chunks: fetched and scored here ----------------------------------------------------------

_TERMS = {
    key: text(
        f"""
        SELECT c.id, c.document_id, c.terms FROM document_chunks c
        WHERE c.{key} = ANY(CAST(:ids AS uuid[]))
        """
    )
    for key in ("id", "job_id")
}


def _score_all(
    session: Session,
    words: Sequence[str],
    enabled: EnabledSet,
    shape: Bm25Shape,
    limit: int,
    *,
    remember: Remember,
) -> list[Scored]:
    weights, mean_length = _word_weights(session, words, shape)
    if not weights:
        return []

    def count_terms() -> TermPostings:
        return TermPostings.of(
            fetch(session, _TERMS[_key(enabled)], {"ids": enabled.ids}, tuple_row)
        )

    postings = remember(count_terms)
    scores = postings.bm25(weights, mean_length, shape)
    found = [
        Scored(postings.chunk_ids[place], postings.document_ids[place], float(scores[place]))
        for place in np.flatnonzero(scores > 0).tolist()
    ]
    found.sort(key=lambda one: (-one.bm25, one.chunk_id))
    return found[:limit]


_PROBES = text(
    f"""
    SELECT probe, -(probe <@> to_bm25query(split_part(probe, ' ', 1), '{BM25_INDEX}'))
    FROM unnest(CAST(:probes AS text[])) probe
    """
)


def _word_weights(
    session: Session, words: Sequence[str], shape: Bm25Shape
) -> tuple[dict[str, float], float]:
    """Inverse document frequency of each word that the corpus holds, and the mean length of a
    chunk in terms: what the extension scores with, got out of it by asking for the scores of
    texts of one word and of two."""
    probes = [*dict.fromkeys(words)]
    binds = {"probes": [*probes, *(f"{probe} {_FILLER}" for probe in probes)]}
    scores: dict[str, float] = dict(fetch(session, _PROBES, binds, tuple_row))
    known = [probe for probe in probes if scores[probe] > 0]
    if not known:
        return {}, 1.0
    mean_length = _mean_length(scores[known[0]] / scores[f"{known[0]} {_FILLER}"], shape)
    norm = shape.k1 * (1 - shape.b + shape.b / mean_length)
    return {word: scores[word] * (1 + norm) / (shape.k1 + 1) for word in known}, mean_length


def _mean_length(ratio: float, shape: Bm25Shape) -> float:
    """From the ratio of the scores of a text of one term and of that with another behind it:
    (1 + k1 (1 - b + 2b/m)) / (1 + k1 (1 - b + b/m)), solved for m."""
    if shape.k1 * shape.b <= 0 or ratio <= 1:
        return 1.0  # Length does not count.
    per_term = (ratio - 1) * (1 + shape.k1 * (1 - shape.b)) / (2 - ratio)
    return shape.k1 * shape.b / per_term


# --- more: the best rows of the index, as far as they are in the selection ------------------------

# The rows are read from the index in a derived table of their own, without any condition:
# pg_textsearch then knows how many are wanted and skips what cannot be among them. The first row
# comes along even if it is not in the selection, to tell how many matched.
_IS_IN, _MATCHED = 3, 4


@lru_cache(maxsize=128)
def _filtered(is_in: str) -> TextClause:
    return text(
        f"""
        SELECT chunk_id, document_id, -distance AS bm25, is_in, matched
        FROM (
            SELECT chunk_id, document_id, distance, {is_in} AS is_in,
                   count(*) OVER () AS matched,
                   row_number() OVER (ORDER BY distance, chunk_id) AS place
            FROM (
                SELECT c.id AS chunk_id, c.job_id, c.document_id,
                       c.terms <@> to_bm25query(:words, '{BM25_INDEX}') AS distance
                FROM document_chunks c
                ORDER BY c.terms <@> to_bm25query(:words_again, '{BM25_INDEX}')
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
    session: Session,
    words: Sequence[str],
    is_in: str,
    binds: Mapping[str, Any],
    *,
    rows: int,
    limit: int,
    enough: int,
    settings: Planner,
) -> list[Scored]:
    """The index's best chunks that are in a selection: `limit`, or all that match, or at least
    the best `enough`. `is_in` is an expression, with `binds`, of the chunk's `chunk_id`, `job_id`
    and `document_id`. First the best `rows` are read, then more as long as those are too few."""
    statement, question = _filtered(is_in), " ".join(words)
    binds = {**binds, "words": question, "words_again": question, "limit": limit}
    while True:
        read = fetch_under(session, settings, statement, binds | {"rows": rows}, tuple_row)
        found = [Scored(*row[:3]) for row in read if row[_IS_IN]]
        is_exhausted = not read or read[0][_MATCHED] < rows
        if len(found) >= enough or is_exhausted:
            return found[:limit]
        rows *= _MORE


def _key(enabled: EnabledSet) -> str:
    return "id" if enabled.of_chunks else "job_id"


def as_arrays(found: Sequence[Scored]) -> dict[str, list[Any]]:
    """For the search statement, which takes them up as its keyword leg."""
    columns = zip(*found, strict=True) if found else ((), (), ())
    return {name: list(values) for name, values in zip(KEYWORD_ARRAYS, columns, strict=True)}
