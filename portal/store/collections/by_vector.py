"""Find the records of a program's collection nearest to a vector, by comparing all or by an index.

The session must be from `Database.read`: planner settings of a search end with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from pgvector import Vector as PgVector
from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.domain.vector_collections import RecordFilter, StoredRecord
from portal.settings import SearchSettings
from portal.store.binary_parameters import VectorParameter
from portal.store.collections.reads import condition_of
from portal.store.collections.rows import VectorCollection
from portal.store.embedding_models.vector_index import IndexShape, scan_settings
from portal.store.statements import fetch_under

# pgvector returns NaN for the cosine with a zero vector; treat it as orthogonal.
_DISTANCES = {
    "cosine": "COALESCE(NULLIF({vector} <=> CAST(:query_vector AS vector), 'NaN'), 1)",
    "l2": "vector_l2_squared_distance({vector}, CAST(:query_vector AS vector))",
    "ip": "1 + ({vector} <#> CAST(:query_vector AS vector))",
}
# The planner cannot know how few rows of an ordered scan are needed, and prefers to join everything
# and sort.
_IN_ORDER = dict.fromkeys(("enable_sort", "enable_hashjoin", "enable_mergejoin"), "off")
# Compiling a plan takes longer than comparing some thousand vectors.
_COMPARING = {"jit": "off"}
# Half precision can swap near neighbours.
_HALF_PRECISION_FACTOR = 2
# Matching records are scattered over the graph: a scan that stops at the first few misses nearer
# ones.
_FILTERED_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Nearest:
    """A search: the statement `near` selects candidates with vectors, to be ordered by distance to
    the bind `query_vector`, under the planner's `settings`."""

    collection: VectorCollection
    near: str
    binds: Mapping[str, Any]
    settings: Mapping[str, str]


def by_comparing(
    collection: VectorCollection,
    query_vector: Vector,
    *,
    wanted: RecordFilter,
    limit: int | None,
    named: str | None = None,
) -> Nearest:
    """Compare all matching records: the chunks in the array `named`, if they were looked up, or
    else those that match the filter."""
    binds: dict[str, Any] = {"query_vector": VectorParameter(query_vector), "limit": limit}
    if named is None:
        return Nearest(collection, _vectors(collection, wanted, binds), binds, _COMPARING)
    binds["named"] = named
    near = f"""
        SELECT e.chunk_id, e.embedding FROM {_partition(collection)} e
        WHERE e.chunk_id = ANY(CAST(:named AS uuid[]))
    """
    return Nearest(collection, near, binds, _COMPARING)


def by_index(
    collection: VectorCollection,
    shape: IndexShape,
    query_vector: Vector,
    *,
    wanted: RecordFilter,
    limit: int,
    search: SearchSettings,
) -> Nearest:
    """Search the collection's index. It may miss a few records, and finds fewer than `limit` if a
    filter rejects nearly all that are near."""
    binds: dict[str, Any] = {"query_vector": VectorParameter(query_vector), "limit": limit}
    factor = 1 if wanted.is_empty else _FILTERED_FACTOR
    factor *= _HALF_PRECISION_FACTOR if shape.vector_type == "halfvec" else 1
    binds["candidates"] = limit * factor
    near = index_statement(collection, shape, wanted, binds)
    return Nearest(collection, near, binds, scan_settings(search, binds["candidates"]) | _IN_ORDER)


def index_statement(
    collection: VectorCollection, shape: IndexShape, wanted: RecordFilter, binds: dict[str, Any]
) -> str:
    """Return the statement that takes `candidates` from the index, ordered by the expression it is
    built on. Values of the filter are added to `binds`."""
    if collection.model is None:
        raise ValueError("the collection has no vectors")
    order = shape.distance("e.embedding", ":query_vector", collection.model.dimensions)
    return f"{_vectors(collection, wanted, binds)} ORDER BY {order} LIMIT :candidates"


def _vectors(collection: VectorCollection, wanted: RecordFilter, binds: dict[str, Any]) -> str:
    """Select the vectors of matching records, unordered; chunks are joined only for conditions."""
    condition = condition_of(wanted, binds)
    chunks = "JOIN document_chunks c ON c.id = e.chunk_id" if condition else ""
    return f"""
        SELECT e.chunk_id, e.embedding FROM {_partition(collection)} e
        JOIN documents d ON d.current_job_id = e.job_id AND d.deleted_at IS NULL
        {chunks} WHERE TRUE {condition}
    """


def read_chunks(session: Session, search: Nearest) -> list[UUID]:
    """Return the ids of the nearest chunks, nearest first; of equals, the one added first."""
    return [row[0] for row in _fetch(session, search, _best(search, with_vectors=False))]


def read_records(
    session: Session, search: Nearest, *, with_vectors: bool = False
) -> list[StoredRecord]:
    """Return the nearest records with distances, nearest first; of equals, the one added first."""
    statement = f"""
        SELECT c.external_id, c.content, c.metadata, best.distance, best.embedding
        FROM ({_best(search, with_vectors=with_vectors)}) best
        JOIN document_chunks c ON c.id = best.chunk_id
        ORDER BY best.distance, best.chunk_id
    """
    return [
        StoredRecord(key, content, metadata, vector=_vector(vector), distance=distance)
        for key, content, metadata, distance, vector in _fetch(session, search, statement)
    ]


def _best(search: Nearest, *, with_vectors: bool) -> str:
    vector = "near.embedding" if with_vectors else "CAST(NULL AS vector)"
    distance = _DISTANCES[search.collection.distance].format(vector="near.embedding")
    return f"""
        SELECT near.chunk_id, {vector} AS embedding, {distance} AS distance
        FROM ({search.near}) near
        ORDER BY distance, near.chunk_id LIMIT :limit
    """


def cosines(
    session: Session, collection: VectorCollection, query_vector: Vector, ids: Sequence[UUID]
) -> dict[UUID, float]:
    """Return the cosine of each chunk with a vector."""
    if collection.model is None:
        return {}
    statement = f"""
        SELECT e.chunk_id, 1 - {_DISTANCES["cosine"].format(vector="e.embedding")}
        FROM {collection.model.partition} e WHERE e.chunk_id = ANY(CAST(:ids AS uuid[]))
    """
    binds = {"query_vector": VectorParameter(query_vector), "ids": list(ids)}
    return dict(_fetch(session, Nearest(collection, "", binds, _COMPARING), statement))


def _fetch(session: Session, search: Nearest, statement: str) -> list[Any]:
    return fetch_under(session, search.settings, _clause(statement), search.binds)


@lru_cache(maxsize=128)
def _clause(statement: str) -> TextClause:
    # One clause per statement: SQLAlchemy caches compiled statements by the clause object.
    return text(statement)


def _partition(collection: VectorCollection) -> str:
    if collection.model is None:
        raise ValueError("the collection has no vectors")
    return collection.model.partition


def _vector(stored: bytes | None) -> Vector | None:
    return None if stored is None else PgVector.from_binary(stored).to_numpy()
