"""The legs of a search, each as one statement that returns its offers.

Neither needs the other, so both are sent at once. The visibility conditions are inside both,
before their LIMIT: filtering afterwards would lose results to documents that are switched off.
`domain.search.fusion` puts the offers into one order; `store.search.found_chunks` reads the
winners.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from sqlalchemy import TextClause, text

from portal.domain.search import KeywordBackend
from portal.domain.search.bm25 import ALL_CHUNKS, Bm25Index
from portal.store.documents.selection import selection_sql
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.keywords.index import COVER_DENSITY
from portal.store.search.selection.job_slots import counting_by_slots

# The alias of shared chunks, which are all of current jobs.
_SHARED = "w"


class VectorPlan(StrEnum):
    """Plans of the vector leg. `index`: scan near vectors in order and keep those that are enabled.
    `exact`: compare every enabled vector."""

    INDEX = "index"
    EXACT = "exact"


class KeywordPlan(StrEnum):
    """Plans of the keyword leg. `index`: scan the best chunks in order and keep the enabled ones.
    `selection`: use hits looked up beforehand (`keywords.candidates`)."""

    INDEX = "index"
    SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """The vector leg over a model's partition. `order` is the expression that the index orders by,
    `distance` the exact distance to the query; an index scan reads `candidate_factor` times the
    limit.

    Embedding models put Chinese next to Chinese: a Chinese query is nearer to any Chinese chunk
    than to the English one that answers it. The direction from English to Chinese is therefore
    measured for each model (`embeddings.calibration`) and removed from the query; the index halves
    it in stored vectors and doubles it in queries (`language_axis`, ADR 32), so that its graph has
    both languages side by side. `order` must be that same expression, or PostgreSQL does not use
    the index. An index built before the direction was known has plain vectors, and finds little
    across languages: until it is rebuilt it is searched with the plain query. Scores come from the
    stored vectors either way.
    """

    plan: VectorPlan
    partition: str
    order: str
    distance: str
    candidate_factor: int

    @classmethod
    def of(cls, model: RegisteredModel, plan: VectorPlan) -> VectorLeg:
        asked = "search_vector" if model.shape.axis else "plain_vector"
        order = model.order_expression("e", asked)
        distance = model.exact_distance("e", "search_vector")
        return cls(plan, model.partition, order, distance, model.candidate_factor)


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """The keyword leg. `index` is the index of words that the plan of that name scans."""

    plan: KeywordPlan
    backend: KeywordBackend
    index: Bm25Index


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that determines the text of the statements. Each leg offers `limit` chunks, a
    literal, unlike all other values, because the planner only uses an index when it knows how many
    rows are wanted. `of_chunks` says whether the enabled set lists chunks or jobs; `documents` and
    `chunks` are further conditions on d and c; `by_document` adds the documents of chunks. With
    `by_slots` all conditions on documents are in the slots of the set."""

    vector: VectorLeg | None
    keyword: KeywordLeg | None
    limit: int
    of_chunks: bool = False
    documents: str = ""
    chunks: str = ""
    by_document: bool = False
    in_conversation: bool = False
    by_slots: bool = False

    def takes_words(self, plan: KeywordPlan) -> bool:
        """Return whether the keyword leg uses pg_textsearch with this plan."""
        leg, backend = self.keyword, KeywordBackend.PG_TEXTSEARCH
        return leg is not None and leg.backend is backend and leg.plan is plan

    @property
    def is_plain(self) -> bool:
        """Return whether one plan serves all searches of this shape. Further conditions vary so
        much in selectivity that each search with them is planned by itself."""
        return not (self.documents or self.chunks)


@lru_cache(maxsize=256)
def vector_statement(shape: Shape) -> TextClause:
    """Return the statement of the vector leg's offers, nearest first; see `_offers`."""
    leg = shape.vector
    if leg is None:
        raise ValueError("the shape has no vector leg")
    if leg.plan is VectorPlan.INDEX:
        # The order of the index is approximate, especially for binary vectors.
        nearest = f"""
            SELECT e.chunk_id, e.document_id, {leg.distance} AS distance, {_cosines(leg)}
            FROM {leg.partition} e {_counting("e", shape, chunks=bool(shape.chunks))}
            ORDER BY {leg.order}
            LIMIT {shape.limit * leg.candidate_factor}
        """
        return _offers(f"({nearest}) nearest", "distance", shape, limit=shape.limit)
    key = "chunk_id" if shape.of_chunks else "job_id"
    nearest = f"""
        SELECT e.chunk_id, e.document_id, {leg.distance} AS distance
        FROM {leg.partition} e
        WHERE e.{key} = ANY(CAST(:enabled_ids AS uuid[]))
        ORDER BY distance
        LIMIT {shape.limit}
    """
    return _offers(_with_cosines(nearest, "distance", leg), "distance", shape)


@lru_cache(maxsize=256)
def keyword_statement(shape: Shape) -> TextClause:
    """Return the statement of the keyword leg's offers, best first; see `_offers`. pg_textsearch
    takes its fast path only if the words are a constant of the plan, which is then not kept."""
    leg = shape.keyword
    if leg is None:
        raise ValueError("the shape has no keyword leg")
    best = _best_by_bm25(leg, shape)
    if not shape.takes_words(KeywordPlan.INDEX):
        best = _best_by_tsvector(leg, shape)
    return _offers(_with_cosines(best, "bm25", shape.vector), "bm25 DESC", shape)


@lru_cache(maxsize=256)
def given_statement(shape: Shape) -> TextClause:
    """Return the statement that adds cosines to hits of words that were looked up beforehand."""
    given = """
        SELECT * FROM unnest(
            CAST(:keyword_chunks AS uuid[]), CAST(:keyword_documents AS uuid[]),
            CAST(:keyword_scores AS float8[])
        ) AS given(chunk_id, document_id, bm25)
    """
    return _offers(_with_cosines(given, "bm25", shape.vector), "bm25 DESC", shape)


def _offers(found: str, order: str, shape: Shape, *, limit: int | None = None) -> TextClause:
    """Return the statement of a leg's offers in order, as one row of arrays, which are read many
    times faster than rows."""
    documents = "CAST(array_agg(document_id) AS text)" if shape.by_document else "NULL"
    bm25 = "array_agg(bm25)" if order.startswith("bm25") else "NULL"
    where = "WHERE bm25 > 0" if order.startswith("bm25") else ""
    return text(f"""
        SELECT CAST(array_agg(chunk_id) AS text), {documents}, array_agg(cosine),
               array_agg(likeness), {bm25}
        FROM (
            SELECT * FROM {found} {where}
            ORDER BY {order}, chunk_id {f"LIMIT {limit}" if limit else ""}
        ) offers
    """)


def _cosines(leg: VectorLeg | None) -> str:
    """Return the columns of true cosines: the vector leg is ordered by shortened vectors, and hits
    of the keyword leg need cosines too."""
    if leg is None:
        return "CAST(NULL AS float8) AS cosine, CAST(NULL AS float8) AS likeness"
    return """1 - (e.embedding <=> CAST(:plain_vector AS vector)) AS cosine,
              1 - (e.embedding <=> CAST(:corrected_vector AS vector)) AS likeness"""


def _with_cosines(found: str, score: str, leg: VectorLeg | None) -> str:
    """Return hits with their cosines, NULL for chunks without a vector."""
    vectors = f"LEFT JOIN {leg.partition} e ON e.chunk_id = found.chunk_id" if leg else ""
    return f"""(
        SELECT found.chunk_id, found.document_id, found.{score}, {_cosines(leg)}
        FROM ({found}) found {vectors}
    ) scored"""


def _counting(leg: str, shape: Shape, *, chunks: bool) -> str:
    """Return joins and conditions that keep only what is enabled for the user."""
    if shape.by_slots:
        return counting_by_slots(leg, has_other_jobs=leg != _SHARED)
    # The join is by the job alone: with a second column the planner underestimates the rows and
    # does not use the index.
    join = f"JOIN document_chunks c ON c.id = {leg}.chunk_id" if chunks else ""
    joins, counts = selection_sql(in_conversation=shape.in_conversation)
    return f"""
        JOIN documents d ON d.current_job_id = {leg}.job_id
        {join} {joins}
        WHERE d.collection_id = :collection_id AND {counts}
          {shape.documents} {shape.chunks}
    """


def _best_by_bm25(leg: KeywordLeg, shape: Shape) -> str:
    # Scores are negative and lower is better; 0 is no match. The words are given twice, as two
    # parameters, and the score is not transformed: otherwise the extension does not take its fast
    # path, and every row is rescored, a third of a millisecond each.
    index, name = leg.index, "c" if leg.index is ALL_CHUNKS else _SHARED
    counting = _counting(name, shape, chunks=bool(shape.chunks) and index is not ALL_CHUNKS)
    return f"""
        SELECT chunk_id, document_id, -distance AS bm25
        FROM (
            SELECT {name}.{index.chunk_id} AS chunk_id, {name}.document_id,
                   {name}.terms <@> to_bm25query(:words, '{index.name}') AS distance
            FROM {index.table} {name} {counting}
            ORDER BY {name}.terms <@> to_bm25query(:words_again, '{index.name}')
            LIMIT :leg_limit
        ) nearest
    """


def _best_by_tsvector(leg: KeywordLeg, shape: Shape) -> str:
    counting = _counting("c", shape, chunks=False)
    if leg.plan is KeywordPlan.SELECTION:
        key = "id" if shape.of_chunks else "job_id"
        counting = f"WHERE c.{key} = ANY(CAST(:enabled_ids AS uuid[]))"
    return f"""
        SELECT c.id AS chunk_id, c.document_id, {COVER_DENSITY} AS bm25
        FROM document_chunks c {counting} AND c.terms_vector @@ to_tsquery('simple', :words)
        ORDER BY bm25 DESC, c.id
        LIMIT {shape.limit}
    """
