"""Hybrid search in one statement: two legs, fused, joined to their documents.

Each leg is a derived table with its own ORDER BY and LIMIT, because an index cannot order by a
column of a common table expression. What a person may see stands inside both legs, before their
LIMIT: filtering afterwards would lose results to documents that are switched off. The rule stands
once more where the winners are joined to their documents: a leg that reads a kept set (see
`enabled_sets`) must not show what was switched off in this very moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from sqlalchemy import TextClause, text

from portal.domain.search import NEAREST_COMPARED, KeywordBackend
from portal.store.documents.page_labels import label_of_chunk
from portal.store.documents.selection import selection_sql
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.fusion import TEXT_SCORE
from portal.store.search.keyword_index import ALL_CHUNKS, COVER_DENSITY, WordIndex

# Ends in a unique key, so that the order of equals is the same each time.
_BEST_FIRST = "fused DESC, cosine DESC NULLS LAST, chunk_id"
_VERSION = "SELECT documents_version FROM collections WHERE id = :collection_id"
_DOCUMENTS_VERSION = f"({_VERSION}) AS documents_version"
DOCUMENTS_VERSION = text(_VERSION)


class VectorPlan(StrEnum):
    """`index`: near vectors in order, those that count are kept. `exact`: every vector that counts
    is compared."""

    INDEX = "index"
    EXACT = "exact"


class KeywordPlan(StrEnum):
    """`index`: best chunks in order, those that count are kept. `selection`: what counts was looked
    up before (`keyword_candidates`)."""

    INDEX = "index"
    SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """`order` is what the index is asked to order by, `distance` the exact one to what the leg
    looks for, which offers `limit` passages. `of_chunks` tells what the enabled set of an exact
    plan names."""

    partition: str
    order: str
    distance: str
    candidate_factor: int
    plan: VectorPlan
    limit: int
    of_chunks: bool = False

    @classmethod
    def of(
        cls, model: RegisteredModel, plan: VectorPlan, *, limit: int, of_chunks: bool
    ) -> VectorLeg:
        # An index of plain vectors finds little between the languages: until it is made anew, it
        # is asked for what is near the plain question.
        asked = "search_vector" if model.shape.axis else "plain_vector"
        return cls(
            partition=model.partition,
            order=model.order_expression("e", asked),
            distance=model.exact_distance("e", "search_vector"),
            candidate_factor=model.candidate_factor,
            plan=plan,
            limit=limit,
            of_chunks=of_chunks,
        )


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """`index` is the index of words that the plan of that name reads."""

    backend: KeywordBackend
    plan: KeywordPlan
    limit: int
    of_chunks: bool = False
    index: WordIndex = ALL_CHUNKS


@dataclass(frozen=True, slots=True)
class Shape:
    """All that decides the statement's text. `documents` and `chunks` are further conditions on d
    and c, `fused` is the expression that orders, `has_boost` lifts a preferred domain,
    `by_document` keeps the best passage of each document alone, `has_min_similarity` takes
    away from the vector leg what is too far. The planner must know how much a leg offers, or it
    leaves the index: numbers that stand in the text, where all else is bound."""

    vector: VectorLeg | None
    keyword: KeywordLeg | None
    fused: str
    documents: str = ""
    chunks: str = ""
    has_boost: bool = False
    by_document: bool = False
    has_min_similarity: bool = False
    in_conversation: bool = False

    @property
    def takes_keyword_index(self) -> bool:
        """Whether the keyword leg takes up what `bm25_statement` found. pg_textsearch takes its
        fast path only where the words are a constant of the plan: what looks for them is planned
        for each search anew, and kept small."""
        return self._takes_words(KeywordPlan.INDEX)

    @property
    def takes_keyword_selection(self) -> bool:
        """Whether the keyword leg takes up what was looked up in a narrow selection."""
        return self._takes_words(KeywordPlan.SELECTION)

    def _takes_words(self, plan: KeywordPlan) -> bool:
        leg, backend = self.keyword, KeywordBackend.PG_TEXTSEARCH
        return leg is not None and leg.backend is backend and leg.plan is plan

    @property
    def is_plain(self) -> bool:
        """Whether one plan serves all searches of this shape: conditions let through so much or so
        little that each needs a plan of its own."""
        return not (self.documents or self.chunks)


@lru_cache(maxsize=256)
def statement(shape: Shape) -> TextClause:
    """Legs to candidates, candidates to scores, scores to the best passages."""
    counted = _counted(shape)
    kept = _best_of_each_document(counted) if shape.by_document else counted
    joins, counts = selection_sql(in_conversation=shape.in_conversation)
    return text(f"""
        SELECT k.chunk_id, d.id AS document_id, d.title, d.media_type,
               c.content, c.terms, c.language, c.page,
               {label_of_chunk("c")} AS page_label, c.heading, c.context, c.char_start, c.char_end,
               k.cosine, k.likeness, k.bm25, k.text_score, k.vector_rank, k.text_rank,
               d.chunk_count AS document_chunks, k.score, k.candidate_count, k.vector_count,
               k.text_count, k.nearest, {_DOCUMENTS_VERSION}
        FROM ({kept} ORDER BY {_BEST_FIRST} LIMIT :limit) k
        JOIN document_chunks c ON c.id = k.chunk_id
        JOIN documents d ON d.id = c.document_id AND d.current_job_id = c.job_id
        {joins}
        WHERE {counts}
        ORDER BY k.fused DESC, k.cosine DESC NULLS LAST, k.chunk_id
    """)


def _counted(shape: Shape) -> str:
    """Candidates with their scores, each with the counts over all of them."""
    legs = " UNION ALL ".join(f"({leg})" for leg in _legs(shape))
    return f"""
        SELECT *, count(*) FILTER (WHERE score >= :threshold) OVER () AS candidate_count,
               count(vector_rank) OVER () AS vector_count,
               count(text_rank) OVER () AS text_count,
               array_agg(likeness) FILTER (WHERE vector_rank <= {NEAREST_COMPARED})
                   OVER () AS nearest
        FROM (
            SELECT *, LEAST(1, GREATEST(0, fused)) AS score
            FROM (
                SELECT *, {shape.fused} + boost AS fused
                FROM (
                    SELECT *, {TEXT_SCORE} AS text_score
                    FROM ({_measured(shape, legs)}) measured
                ) scored
            ) ranked
        ) clamped
    """


def _best_of_each_document(counted: str) -> str:
    """A document once, by its best passage of those that either score speaks for."""
    return f"""
        SELECT * FROM (
            SELECT *, row_number() OVER (PARTITION BY document_id ORDER BY {_BEST_FIRST}) AS place
            FROM ({counted}) counted
            WHERE cosine > 0 OR text_score > 0
        ) placed
        WHERE place = 1
    """


@lru_cache(maxsize=256)
def leg_statement(shape: Shape) -> TextClause:
    """One leg alone, counted: what it costs, for whoever wants it explained."""
    (leg,) = _legs(shape)
    return text(f"SELECT count(*) FROM ({leg}) leg")


def _legs(shape: Shape) -> list[str]:
    legs = []
    if shape.vector is not None:
        legs.append(_vector_leg(shape.vector, shape))
    if shape.keyword is not None:
        legs.append(_keyword_leg(shape.keyword, shape))
    return legs


def _measured(shape: Shape, legs: str) -> str:
    """The candidates of both legs, each once, with what either says of it."""
    vectors, cosine, likeness = "", "CAST(NULL AS float8)", "CAST(NULL AS float8)"
    if shape.vector is not None:
        # The legs' order comes from the index's shortened vectors; scores come from the full one,
        # so that what only the keyword leg found gets its true cosine too.
        vectors = f"LEFT JOIN {shape.vector.partition} e ON e.chunk_id = found.chunk_id"
        cosine = "1 - (e.embedding <=> CAST(:plain_vector AS vector))"
        likeness = "1 - (e.embedding <=> CAST(:corrected_vector AS vector))"
    vector_rank, near_enough = "found.vector_rank", ""
    if shape.has_min_similarity:
        is_near = f"{cosine} >= CAST(:min_similarity AS float8)"
        vector_rank = f"CASE WHEN {is_near} THEN found.vector_rank END AS vector_rank"
        near_enough = f"WHERE found.text_rank IS NOT NULL OR {is_near}"
    boost, preferred = "CAST(0 AS float8)", ""
    if shape.has_boost:
        boost = "CASE WHEN p.domain = :preferred_domain THEN CAST(:boost AS float8) ELSE 0 END"
        preferred = "JOIN documents p ON p.id = found.document_id"
    return f"""
        SELECT found.chunk_id, found.document_id, {vector_rank}, found.text_rank, found.bm25,
               max(found.bm25) OVER () AS best_bm25, {boost} AS boost,
               {cosine} AS cosine, {likeness} AS likeness
        FROM (
            SELECT chunk_id, (array_agg(document_id))[1] AS document_id,
                   min(vector_rank) AS vector_rank, min(text_rank) AS text_rank,
                   COALESCE(max(bm25), 0) AS bm25
            FROM ({legs}) legs
            GROUP BY chunk_id
        ) found
        {vectors} {preferred} {near_enough}
    """


# --- the legs -------------------------------------------------------------------------------------


def _counting(leg: str, shape: Shape, *, chunks: bool) -> str:
    """Joins and conditions that keep only what counts for the person. The join is by the job
    alone: with a second column the planner thinks so few rows pass that it leaves the index."""
    join = f"JOIN document_chunks c ON c.id = {leg}.chunk_id" if chunks else ""
    joins, counts = selection_sql(in_conversation=shape.in_conversation)
    return f"""
        JOIN documents d ON d.current_job_id = {leg}.job_id
        {join} {joins}
        WHERE d.collection_id = :collection_id AND {counts}
          {shape.documents} {shape.chunks}
    """


def _vector_leg(leg: VectorLeg, shape: Shape) -> str:
    if leg.plan is VectorPlan.EXACT:
        key = "chunk_id" if leg.of_chunks else "job_id"
        nearest = f"""
            SELECT e.chunk_id, e.document_id, {leg.distance} AS distance
            FROM {leg.partition} e
            WHERE e.{key} = ANY(CAST(:enabled_ids AS uuid[]))
            ORDER BY distance
            LIMIT {leg.limit}
        """
    else:
        nearest = _by_index(leg, shape)
    return f"""
        SELECT chunk_id, document_id,
               row_number() OVER (ORDER BY distance, chunk_id) AS vector_rank,
               CAST(NULL AS bigint) AS text_rank, CAST(NULL AS float8) AS bm25
        FROM ({nearest}) nearest
    """


def _by_index(leg: VectorLeg, shape: Shape) -> str:
    """What a walk through the index brings. Its order is rough, that of signs alone most of all:
    full vectors tell the distance."""
    walk = f"""
        SELECT e.chunk_id, e.document_id, {leg.distance} AS distance
        FROM {leg.partition} e {_counting("e", shape, chunks=bool(shape.chunks))}
        ORDER BY {leg.order}
        LIMIT {leg.limit * leg.candidate_factor}
    """
    if leg.candidate_factor == 1:
        return walk
    return f"SELECT * FROM ({walk}) walk ORDER BY distance LIMIT {leg.limit}"


def _keyword_leg(leg: KeywordLeg, shape: Shape) -> str:
    if leg.backend is KeywordBackend.PG_TEXTSEARCH:
        best = """
            SELECT * FROM unnest(
                CAST(:keyword_chunks AS uuid[]), CAST(:keyword_documents AS uuid[]),
                CAST(:keyword_scores AS float8[])
            ) AS given(chunk_id, document_id, bm25)
        """
    else:
        best = _best_by_tsvector(leg, shape)
    return f"""
        SELECT chunk_id, document_id, CAST(NULL AS bigint) AS vector_rank,
               row_number() OVER (ORDER BY bm25 DESC, chunk_id) AS text_rank, bm25
        FROM ({best}) best
        WHERE bm25 > 0
    """


@lru_cache(maxsize=256)
def bm25_statement(shape: Shape) -> TextClause:
    """The best passages by the index of words, of those that count: one row of three arrays, as
    text, for `statement` takes them up as they come, and the version of the documents. Its plan
    must not be kept; see `Shape.takes_keyword_index`."""
    # Scores are negative and better is lower; 0 is no match. The words stand twice, as two
    # parameters, and the score as it is: otherwise the extension's fast path is not taken, and
    # every row is rescored, a third of a millisecond each.
    arrays = ", ".join(
        f"CAST(COALESCE(array_agg({column}), '{{}}') AS text)"
        for column in ("chunk_id", "document_id", "-distance")
    )
    index = shape.keyword.index if shape.keyword else ALL_CHUNKS
    is_of_chunks = index is ALL_CHUNKS
    leg = "c" if is_of_chunks else "w"
    counting = _counting(leg, shape, chunks=bool(shape.chunks) and not is_of_chunks)
    return text(f"""
        SELECT {arrays}, {_DOCUMENTS_VERSION}
        FROM (
            SELECT {leg}.{index.chunk_id} AS chunk_id, {leg}.document_id,
                   {leg}.terms <@> to_bm25query(:words, '{index.name}') AS distance
            FROM {index.table} {leg} {counting}
            ORDER BY {leg}.terms <@> to_bm25query(:words_again, '{index.name}')
            LIMIT :leg_limit
        ) nearest
        WHERE distance < 0
    """)


def _best_by_tsvector(leg: KeywordLeg, shape: Shape) -> str:
    counting = _counting("c", shape, chunks=False)
    if leg.plan is KeywordPlan.SELECTION:
        key = "id" if leg.of_chunks else "job_id"
        counting = f"WHERE c.{key} = ANY(CAST(:enabled_ids AS uuid[]))"
    return f"""
        SELECT c.id AS chunk_id, c.document_id, {COVER_DENSITY} AS bm25
        FROM document_chunks c {counting} AND c.terms_vector @@ to_tsquery('simple', :words)
        ORDER BY bm25 DESC, c.id
        LIMIT {leg.limit}
    """
