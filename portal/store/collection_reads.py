"""Reading records of programs' collections: by id, by condition, by vector.

Only documents that are not in the trash are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from pgvector.sqlalchemy import Vector as VectorType
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector
from portal.domain.vector_collections import (
    Page,
    RecordFilter,
    StoredRecord,
    TextCondition,
    TextFilter,
)
from portal.settings import SearchSettings
from portal.store.metadata_sql import metadata_condition
from portal.store.vector_collections import VectorCollection
from portal.store.vector_index import IndexShape, VectorParameter, scan_settings

_LIVE = "d.deleted_at IS NULL AND d.current_job_id = c.job_id"
_RECORDS = f"""
    document_chunks c JOIN documents d ON d.id = c.document_id AND {_LIVE}
"""
# Of the cosine with a vector of no length pgvector says NaN; it is as far as what stands upright.
_DISTANCES = {
    "cosine": "COALESCE(NULLIF({vector} <=> CAST(:question AS vector), 'NaN'), 1)",
    "l2": "vector_l2_squared_distance({vector}, CAST(:question AS vector))",
    "ip": "1 + ({vector} <#> CAST(:question AS vector))",
}
# The planner cannot know how few rows of an ordered scan are needed, and prefers to join everything
# and sort.
_IN_ORDER = dict.fromkeys(("enable_sort", "enable_hashjoin", "enable_mergejoin"), "off")
# Half precision mistakes the order of near ones.
_HALF_PRECISION_FACTOR = 2


def condition_of(wanted: RecordFilter, binds: dict[str, Any]) -> str:
    """The filter as conditions on `document_chunks c`: empty, or beginning with AND. Its values
    are added to `binds`."""
    conditions = []
    if wanted.ids is not None:
        binds["wanted_ids"] = list(wanted.ids)
        conditions.append("c.external_id = ANY(CAST(:wanted_ids AS text[]))")
    if wanted.metadata is not None:
        conditions.append(metadata_condition(wanted.metadata, binds))
    if wanted.text is not None:
        conditions.append(_text_condition(wanted.text, binds))
    return "".join(f" AND {condition}" for condition in conditions)


def _text_condition(wanted: TextFilter, binds: dict[str, Any]) -> str:
    if isinstance(wanted, TextCondition):
        name = f"wanted_text_{len(binds)}"
        binds[name] = wanted.words
        found = f"strpos(c.content, CAST(:{name} AS text)) > 0"
        return f"NOT {found}" if wanted.is_negated else found
    word = " OR " if wanted.any_suffices else " AND "
    return f"({word.join(_text_condition(part, binds) for part in wanted.parts)})"


def count(session: Session, collection: VectorCollection) -> int:
    statement = text(f"SELECT count(*) FROM {_RECORDS} WHERE c.collection_id = :collection")
    return session.scalar(statement, {"collection": collection.id}) or 0


def list_records(
    session: Session, collection: VectorCollection, wanted: RecordFilter, page: Page
) -> list[StoredRecord]:
    """Records that are meant, in the order in which they were first added."""
    binds: dict[str, Any] = {
        "collection": collection.id,
        "limit": page.limit,
        "offset": page.offset,
    }
    vector, joined = "CAST(NULL AS vector)", ""
    if page.with_vectors and collection.model is not None:
        vector = "e.embedding"
        joined = f"LEFT JOIN {collection.model.partition} e ON e.chunk_id = c.id"
    statement = f"""
        SELECT c.external_id, c.content, c.metadata, {vector} AS embedding
        FROM {_RECORDS} {joined}
        WHERE c.collection_id = :collection {condition_of(wanted, binds)}
        ORDER BY c.id LIMIT :limit OFFSET :offset
    """
    rows = session.execute(text(statement).columns(embedding=VectorType()), binds)
    return [
        StoredRecord(row.external_id, row.content, row.metadata, vector=_vector(row.embedding))
        for row in rows
    ]


def find_chunks(session: Session, collection: VectorCollection, wanted: RecordFilter) -> list[UUID]:
    """Chunks of the records that are meant."""
    binds: dict[str, Any] = {"collection": collection.id}
    condition = condition_of(wanted, binds)
    statement = f"SELECT c.id FROM {_RECORDS} WHERE c.collection_id = :collection {condition}"
    return list(session.scalars(text(statement), binds))


def distance_expression(collection: VectorCollection, vector: str) -> str:
    """The distance as callers get it, of an SQL expression for a full vector from `:question`."""
    return _DISTANCES[collection.distance].format(vector=vector)


def nearest(
    session: Session,
    collection: VectorCollection,
    question: Vector,
    wanted: RecordFilter,
    page: Page,
) -> list[StoredRecord]:
    """The records nearest to a vector, by comparing all of them; of equals the first added."""
    if collection.model is None:
        return []
    binds: dict[str, Any] = {"question": VectorParameter(question), "limit": page.limit}
    near = _vectors(collection.model.partition, condition_of(wanted, binds))
    return _ranked(session, collection, near, binds, with_vectors=page.with_vectors)


def nearest_by_index(
    session: Session,
    collection: VectorCollection,
    shape: IndexShape,
    question: Vector,
    *,
    wanted: RecordFilter,
    page: Page,
    search: SearchSettings,
) -> list[StoredRecord]:
    """As `nearest`, but by the collection's index, which may miss a few, and may find fewer than
    wanted where a filter refuses nearly all that is near."""
    if collection.model is None or page.limit is None:
        return []
    factor = _HALF_PRECISION_FACTOR if shape.vector_type == "halfvec" else 1
    binds: dict[str, Any] = {"question": VectorParameter(question), "limit": page.limit}
    binds["candidates"] = page.limit * factor
    _set_locally(session, scan_settings(search, binds["candidates"]) | _IN_ORDER)
    near = index_statement(collection, shape, condition_of(wanted, binds))
    found = _ranked(session, collection, near, binds, with_vectors=page.with_vectors)
    _set_locally(session, dict.fromkeys(_IN_ORDER, "on"))
    return found


def index_statement(collection: VectorCollection, shape: IndexShape, condition: str = "") -> str:
    """What takes candidates from the index: ordered by the very expression it is built on."""
    if collection.model is None:
        raise ValueError("the collection has no vectors")
    order = shape.distance("e.embedding", ":question", collection.model.dimensions)
    near = _vectors(collection.model.partition, condition)
    return f"{near} ORDER BY {order} LIMIT :candidates"


def _vectors(partition: str, condition: str) -> str:
    """Vectors of records that are not in the trash; chunks are read for conditions alone."""
    chunks = "JOIN document_chunks c ON c.id = e.chunk_id" if condition else ""
    return f"""
        SELECT e.chunk_id, e.embedding FROM {partition} e
        JOIN documents d ON d.id = e.document_id AND d.deleted_at IS NULL
         AND d.current_job_id = e.job_id
        {chunks} WHERE TRUE {condition}
    """


def _ranked(
    session: Session,
    collection: VectorCollection,
    near: str,
    binds: dict[str, Any],
    *,
    with_vectors: bool,
) -> list[StoredRecord]:
    vector = "near.embedding" if with_vectors else "CAST(NULL AS vector)"
    statement = f"""
        SELECT c.external_id, c.content, c.metadata, best.distance, best.embedding
        FROM (
            SELECT near.chunk_id, {vector} AS embedding,
                   {distance_expression(collection, "near.embedding")} AS distance
            FROM ({near}) near
            ORDER BY distance, near.chunk_id LIMIT :limit
        ) best JOIN document_chunks c ON c.id = best.chunk_id
        ORDER BY best.distance, best.chunk_id
    """
    rows = session.execute(text(statement).columns(embedding=VectorType()), binds)
    return [
        StoredRecord(
            row.external_id,
            row.content,
            row.metadata,
            vector=_vector(row.embedding),
            distance=row.distance,
        )
        for row in rows
    ]


def _vector(stored: Any) -> Vector | None:
    return None if stored is None else np.asarray(stored, dtype=np.float32)


def cosines(
    session: Session, collection: VectorCollection, question: Vector, ids: Sequence[UUID]
) -> dict[UUID, tuple[float, StoredRecord]]:
    """For chunks their cosine with a vector, and their records."""
    if collection.model is None:
        return {}
    statement = f"""
        SELECT c.id, c.external_id, c.content, c.metadata,
               1 - {_DISTANCES["cosine"].format(vector="e.embedding")} AS cosine
        FROM {collection.model.partition} e JOIN document_chunks c ON c.id = e.chunk_id
        WHERE e.chunk_id = ANY(CAST(:ids AS uuid[]))
    """
    binds = {"question": VectorParameter(question), "ids": list(ids)}
    return {
        row.id: (row.cosine, StoredRecord(row.external_id, row.content, row.metadata))
        for row in session.execute(text(statement), binds)
    }


def _set_locally(session: Session, settings: dict[str, str]) -> None:
    """Settings that end with the transaction."""
    for name, value in settings.items():
        session.execute(
            text("SELECT set_config(:name, :value, true)"), {"name": name, "value": value}
        )
