"""Hybrid search in one statement: two legs, fused, joined to their documents.

Each leg is a derived table with its own ORDER BY and LIMIT, because an index cannot order by a
column of a common table expression. The rule of who may see what stands inside both legs, before
their LIMIT: filtering afterwards would lose results to documents that are switched off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from portal.domain.people import Person
from portal.domain.search import Fusion, KeywordBackend, SearchMode, Weights
from portal.store.documents import portal_collection_id
from portal.store.embedding_models import RegisteredModel
from portal.store.fusion import FUSIONS, KEYWORD_ONLY, TEXT_SCORE, VECTOR_ONLY, VECTOR_PART
from portal.store.keyword_index import BM25_INDEX
from portal.store.selection import SELECTION_JOINS, SELECTION_WHERE, selection_binds


class StatementFailed(Exception):
    """The search statement failed: an index is broken, an extension gone, time ran out."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """What the vector leg looks for. `search_vector` orders the leg, `plain_vector` gives the
    cosine that is shown, `corrected_vector` the likeness that fusion and confidence use; low and
    width put likeness on the scale of this question. With `is_corrected` likeness orders even
    without a keyword leg, as in hybrid search that had to do without one."""

    model: RegisteredModel
    search_vector: Sequence[float]
    plain_vector: Sequence[float]
    corrected_vector: Sequence[float]
    is_corrected: bool
    likeness_low: float
    likeness_width: float


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """What the keyword leg looks for: `words` as the backend takes them."""

    backend: KeywordBackend
    words: str
    text_floor: float


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, and what they narrow the search to."""

    person: Person
    conversation_id: UUID | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with its scores; the `best_…` and `mean_…` are over all candidates."""

    chunk_id: UUID
    document_id: UUID
    title: str
    media_type: str
    domain: str | None
    content: str
    language: str
    page: int | None
    heading: str | None
    char_start: int
    char_end: int
    cosine: float | None
    likeness: float | None
    bm25: float
    text_score: float
    vector_rank: int | None
    text_rank: int | None
    score: float
    best_bm25: float
    candidate_count: int


_DOCUMENTS = f"""
    JOIN documents d ON d.current_job_id = {{leg}}.job_id
    {SELECTION_JOINS}
    WHERE d.collection_id = :collection_id AND {SELECTION_WHERE} {{narrowed}}
"""


def _vector_leg(model: RegisteredModel, narrowed: str) -> str:
    distance = (
        f"CAST(e.embedding AS halfvec({model.dimensions}))"
        f" <=> CAST(:search_vector AS halfvec({model.dimensions}))"
    )
    return f"""
        SELECT chunk_id, row_number() OVER (ORDER BY distance, chunk_id) AS vector_rank,
               CAST(NULL AS bigint) AS text_rank, CAST(NULL AS float8) AS bm25
        FROM (
            SELECT e.chunk_id, {distance} AS distance
            FROM {model.partition} e
            {_DOCUMENTS.format(leg="e", narrowed=narrowed)}
            ORDER BY {distance}
            LIMIT :leg_limit
        ) nearest
    """


def _bm25_leg(narrowed: str) -> str:
    # Scores are negative and better is lower; 0 is no match. The words stand twice, as two
    # parameters: with one, the extension's fast path is not taken and every row is rescored.
    return f"""
        SELECT chunk_id, CAST(NULL AS bigint) AS vector_rank,
               row_number() OVER (ORDER BY distance, chunk_id) AS text_rank, -distance AS bm25
        FROM (
            SELECT c.id AS chunk_id, c.terms <@> to_bm25query(:words, '{BM25_INDEX}') AS distance
            FROM document_chunks c
            {_DOCUMENTS.format(leg="c", narrowed=narrowed)}
            ORDER BY c.terms <@> to_bm25query(:words_again, '{BM25_INDEX}')
            LIMIT :leg_limit
        ) best
        WHERE distance < 0
    """


def _tsvector_leg(narrowed: str) -> str:
    return f"""
        SELECT chunk_id, CAST(NULL AS bigint) AS vector_rank,
               row_number() OVER (ORDER BY rank DESC, chunk_id) AS text_rank, rank AS bm25
        FROM (
            SELECT c.id AS chunk_id,
                   CAST(
                       ts_rank_cd(c.terms_vector, to_tsquery('simple', :words), 1) AS float8
                   ) AS rank
            FROM document_chunks c
            {_DOCUMENTS.format(leg="c", narrowed=narrowed)}
              AND c.terms_vector @@ to_tsquery('simple', :words)
            ORDER BY rank DESC, c.id
            LIMIT :leg_limit
        ) best
    """


def _keyword_leg(backend: KeywordBackend, narrowed: str) -> str:
    leg = {KeywordBackend.PG_TEXTSEARCH: _bm25_leg, KeywordBackend.TSVECTOR: _tsvector_leg}
    return leg[backend](narrowed)


def _statement(legs: Sequence[str], model: RegisteredModel | None, fused: str) -> str:
    """Legs to candidates, candidates to scores, scores to the best passages."""
    if model is None:
        vectors, cosine, likeness = "", "CAST(NULL AS float8)", "CAST(NULL AS float8)"
    else:
        # The legs' order comes from the index's half precision; scores come from the full vector,
        # so that what only the keyword leg found gets its true cosine too.
        vectors = f"LEFT JOIN {model.partition} e ON e.chunk_id = found.chunk_id"
        cosine = "1 - (e.embedding <=> CAST(:plain_vector AS vector))"
        likeness = "1 - (e.embedding <=> CAST(:corrected_vector AS vector))"
    return f"""
        SELECT k.chunk_id, d.id AS document_id, d.title, d.media_type, d.domain,
               c.content, c.language, c.page, c.heading, c.char_start, c.char_end,
               k.cosine, k.likeness, k.bm25, k.text_score, k.vector_rank, k.text_rank,
               k.score, k.best_bm25, k.candidate_count
        FROM (
            SELECT *, count(*) FILTER (WHERE score >= :threshold) OVER () AS candidate_count
            FROM (
              SELECT *, LEAST(1, GREATEST(0, fused)) AS score
              FROM (
                SELECT *, {fused} AS fused
                FROM (
                    SELECT *, {TEXT_SCORE} AS text_score
                    FROM (
                        SELECT found.chunk_id, found.vector_rank, found.text_rank, found.bm25,
                               max(found.bm25) OVER () AS best_bm25,
                               {cosine} AS cosine, {likeness} AS likeness
                        FROM (
                            SELECT chunk_id, min(vector_rank) AS vector_rank,
                                   min(text_rank) AS text_rank, COALESCE(max(bm25), 0) AS bm25
                            FROM ({" UNION ALL ".join(f"({leg})" for leg in legs)}) legs
                            GROUP BY chunk_id
                        ) found
                        {vectors}
                    ) measured
                ) scored
              ) ranked
            ) clamped
            ORDER BY fused DESC, cosine DESC NULLS LAST, chunk_id
            LIMIT :limit
        ) k
        JOIN document_chunks c ON c.id = k.chunk_id
        JOIN documents d ON d.id = c.document_id
        ORDER BY k.fused DESC, k.cosine DESC NULLS LAST, k.chunk_id
    """


def find_passages(
    session: Session,
    scope: Scope,
    *,
    vector: VectorQuery | None,
    keywords: KeywordQuery | None,
    fusion: Fusion,
    weights: Weights,
    rrf_k: int,
    limit: int,
    leg_limit: int,
    threshold: float,
) -> list[Candidate]:
    """The best passages for a question among what this person may see and has switched on.

    At least one of `vector` and `keywords` is given; with one, its own score orders the results.
    `candidate_count` counts those that score `threshold` or more; the rows are not cut by it,
    because confidence is judged among the best, whatever their score.
    """
    narrowed = "AND d.domain = :domain" if scope.domain is not None else ""
    legs: list[str] = []
    binds: dict[str, Any] = selection_binds(scope.person, scope.conversation_id)
    binds["collection_id"] = portal_collection_id(session)
    binds |= {"limit": limit, "leg_limit": leg_limit, "text_floor": 0.0, "threshold": threshold}
    if scope.domain is not None:
        binds["domain"] = scope.domain
    if vector is not None:
        legs.append(_vector_leg(vector.model, narrowed))
        binds |= {
            "search_vector": _literal(vector.search_vector),
            "plain_vector": _literal(vector.plain_vector),
            "corrected_vector": _literal(vector.corrected_vector),
        }
    if keywords is not None:
        legs.append(_keyword_leg(keywords.backend, narrowed))
        binds |= {"words": keywords.words, "text_floor": keywords.text_floor}
        if keywords.backend is KeywordBackend.PG_TEXTSEARCH:
            binds["words_again"] = keywords.words
    fused = _fused(vector, keywords, fusion)
    if vector is not None:
        binds |= _fusion_binds(fused, vector, weights, rrf_k)
    statement = _statement(legs, vector.model if vector else None, fused)
    try:
        rows = session.execute(text(statement), binds).mappings().all()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        raise StatementFailed from error
    return [Candidate(**row) for row in rows]


def _fused(vector: VectorQuery | None, keywords: KeywordQuery | None, fusion: Fusion) -> str:
    """The expression that orders the candidates."""
    if vector is None:
        return KEYWORD_ONLY
    if keywords is not None:
        return FUSIONS[fusion]
    return VECTOR_PART if vector.is_corrected else VECTOR_ONLY


def _fusion_binds(fused: str, vector: VectorQuery, weights: Weights, rrf_k: int) -> dict[str, Any]:
    """Values for the binds that the expression has; the driver refuses any that it has not."""
    binds = {
        "rrf_k": rrf_k,
        "vector_weight": weights.vector,
        "text_weight": weights.text,
        "likeness_low": vector.likeness_low,
        "likeness_width": vector.likeness_width,
    }
    return {name: value for name, value in binds.items() if f":{name}" in fused}


def _literal(vector: Sequence[float]) -> str:
    return "[" + ",".join(map(str, vector)) + "]"


def tune(session: Session, *, ef_search: int, leg_limit: int, timeout_s: float) -> None:
    """Set what the next statement of this transaction runs with.

    `ef_search` below the LIMIT would cut results short; the iterative scan goes on when the
    selection refuses what the index offers; a generic plan would rescore every row.
    """
    session.execute(
        text(
            """
            SELECT set_config('hnsw.ef_search', :ef_search, true),
                   set_config('hnsw.iterative_scan', 'relaxed_order', true),
                   set_config('plan_cache_mode', 'force_custom_plan', true),
                   set_config('enable_hashjoin', 'off', true),
                   set_config('enable_mergejoin', 'off', true),
                   set_config('statement_timeout', :timeout_ms, true)
            """
        ),
        {
            "ef_search": str(min(1000, max(ef_search, leg_limit))),
            "timeout_ms": str(int(timeout_s * 1000)),
        },
    )


def source_of(candidate: Candidate) -> SearchMode:
    """Which legs found a passage."""
    if candidate.vector_rank is None:
        return SearchMode.KEYWORD
    return SearchMode.VECTOR if candidate.text_rank is None else SearchMode.HYBRID
