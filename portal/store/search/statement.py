"""The legs of a search as one statement that returns their offers.

Each leg is a derived table with its own ORDER BY and LIMIT, because an index cannot order by a
column of a common table expression. The visibility conditions are inside both legs, before their
LIMIT: filtering afterwards would lose results to documents that are switched off. `domain.fusion`
puts the offers into one order; `store.search.found_chunks` reads the winners.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from sqlalchemy import TextClause, text

from portal.domain.search import KeywordBackend
from portal.store.documents.selection import selection_sql
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.keyword_index import ALL_CHUNKS, COVER_DENSITY, WordIndex

VERSION = "SELECT documents_version FROM collections WHERE id = :collection_id"


class VectorPlan(StrEnum):
    """Plans of the vector leg. `index`: scan near vectors in order and keep those that count.
    `exact`: compare every vector that counts."""

    INDEX = "index"
    EXACT = "exact"


class KeywordPlan(StrEnum):
    """Plans of the keyword leg. `index`: scan the best chunks in order and keep those that count.
    `selection`: use hits looked up beforehand (`keyword_candidates`)."""

    INDEX = "index"
    SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """The vector leg. `order` is the expression that the index orders by, `distance` the exact
    distance to the query; the leg offers `limit` chunks. `of_chunks` says whether the enabled set
    of an exact plan lists chunks or jobs."""

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
        """Return the leg of a model.

        Embedding models put Chinese next to Chinese: a Chinese query is nearer to any Chinese chunk
        than to the English one that answers it. The direction from English to Chinese is therefore
        measured for each model (`embeddings.calibration`), removed from the query, and removed from
        stored vectors inside the index expression, so that the graph itself has both languages side
        by side (ADR 32). `order` must be that same expression, or PostgreSQL does not use the
        index. An index built before the direction was known has plain vectors, and finds little
        across languages: until it is rebuilt it is searched with the plain query. Scores come from
        the stored vectors either way.
        """
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
    """The keyword leg. `index` is the index of words that the plan of that name scans."""

    backend: KeywordBackend
    plan: KeywordPlan
    limit: int
    of_chunks: bool = False
    index: WordIndex = ALL_CHUNKS


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that determines the statement's text. `documents` and `chunks` are further
    conditions on d and c; `by_document` adds the documents of chunks. The leg limits are literals,
    unlike all other values, because the planner only uses an index when it knows how many rows are
    wanted."""

    vector: VectorLeg | None
    keyword: KeywordLeg | None
    documents: str = ""
    chunks: str = ""
    by_document: bool = False
    in_conversation: bool = False

    @property
    def takes_keyword_index(self) -> bool:
        """Tell whether the keyword leg takes the result of `bm25_statement`. pg_textsearch takes
        its fast path only where the words are a constant of the plan, so that statement is planned
        for each search, and kept small."""
        return self._takes_words(KeywordPlan.INDEX)

    @property
    def takes_keyword_selection(self) -> bool:
        """Tell whether the keyword leg takes hits looked up in a narrow selection."""
        return self._takes_words(KeywordPlan.SELECTION)

    def _takes_words(self, plan: KeywordPlan) -> bool:
        leg, backend = self.keyword, KeywordBackend.PG_TEXTSEARCH
        return leg is not None and leg.backend is backend and leg.plan is plan

    @property
    def is_plain(self) -> bool:
        """Tell whether one plan serves all searches of this shape. Further conditions vary so much
        in selectivity that each search with them needs a plan of its own."""
        return not (self.documents or self.chunks)


@lru_cache(maxsize=256)
def statement(shape: Shape) -> TextClause:
    """Return the statement of both legs: their offers, each chunk once, as one row of arrays, which
    are read many times faster than rows. Ids are text, the form in which `found_chunks` takes
    them."""
    legs = " UNION ALL ".join(f"({leg})" for leg in _legs(shape))
    vectors, cosine, likeness = "", "CAST(NULL AS float8)", "CAST(NULL AS float8)"
    if shape.vector is not None:
        # The legs' order comes from the index's shortened vectors; scores come from the full ones,
        # so that a hit of the keyword leg alone gets its true cosine too.
        vectors = f"LEFT JOIN {shape.vector.partition} e ON e.chunk_id = found.chunk_id"
        cosine = "1 - (e.embedding <=> CAST(:plain_vector AS vector))"
        likeness = "1 - (e.embedding <=> CAST(:corrected_vector AS vector))"
    documents = "CAST(array_agg(found.document_id) AS text)" if shape.by_document else "NULL"
    return text(f"""
        SELECT CAST(array_agg(found.chunk_id) AS text), {documents},
               array_agg(found.vector_rank), array_agg(found.text_rank),
               array_agg({cosine}), array_agg({likeness}), array_agg(found.bm25), ({VERSION})
        FROM (
            SELECT chunk_id, (array_agg(document_id))[1] AS document_id,
                   min(vector_rank) AS vector_rank, min(text_rank) AS text_rank,
                   COALESCE(max(bm25), 0) AS bm25
            FROM ({legs}) legs
            GROUP BY chunk_id
        ) found
        {vectors}
    """)


@lru_cache(maxsize=256)
def leg_statement(shape: Shape) -> TextClause:
    """Return the statement of one leg with a count of its rows, to time it for an explanation."""
    (leg,) = _legs(shape)
    return text(f"SELECT count(*) FROM ({leg}) leg")


def _legs(shape: Shape) -> list[str]:
    legs = []
    if shape.vector is not None:
        legs.append(_vector_leg(shape.vector, shape))
    if shape.keyword is not None:
        legs.append(_keyword_leg(shape.keyword, shape))
    return legs


def _counting(leg: str, shape: Shape, *, chunks: bool) -> str:
    """Return joins and conditions that keep only what counts for the user."""
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
    """Return the hits of an index scan, with distances from the full vectors."""
    # The order of the index is approximate, especially for binary vectors.
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
    """Return the statement of the best chunks that count by the index of words: one row of three
    arrays, as text, the form in which `statement` takes them, and the version of the documents. Its
    plan must not be cached; see `Shape.takes_keyword_index`."""
    # Scores are negative and lower is better; 0 is no match. The words are given twice, as two
    # parameters, and the score is not transformed: otherwise the extension does not take its fast
    # path, and every row is rescored, a third of a millisecond each.
    arrays = ", ".join(
        f"CAST(COALESCE(array_agg({column}), '{{}}') AS text)"
        for column in ("chunk_id", "document_id", "-distance")
    )
    index = shape.keyword.index if shape.keyword else ALL_CHUNKS
    is_of_chunks = index is ALL_CHUNKS
    leg = "c" if is_of_chunks else "w"
    counting = _counting(leg, shape, chunks=bool(shape.chunks) and not is_of_chunks)
    return text(f"""
        SELECT {arrays}, ({VERSION})
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
