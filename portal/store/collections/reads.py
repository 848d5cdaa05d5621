"""Read records of programs' collections by id and by condition, without documents in the trash."""

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
from portal.store.collections.rows import VectorCollection
from portal.store.search.filters.metadata import metadata_condition
from portal.store.search.selection.enabled import EnabledSet

# Joined by the job alone, which belongs to one document: with a second column, the planner would
# expect almost no rows.
LIVE = "d.current_job_id = c.job_id AND d.deleted_at IS NULL"
_RECORDS = f"document_chunks c JOIN documents d ON {LIVE}"


def condition_of(wanted: RecordFilter, binds: dict[str, Any]) -> str:
    """Return the filter as conditions on `document_chunks c`, empty or starting with AND; its
    values are added to `binds`."""
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
    """Return matching records in insertion order."""
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


def name_chunks(
    session: Session, collection: VectorCollection, wanted: RecordFilter, *, max_count: int
) -> EnabledSet:
    """Return the chunks of matching records, counted up to `max_count` + 1; `ids` is None if
    there are more than `max_count`."""
    binds: dict[str, Any] = {"collection": collection.id, "max_count": max_count}
    statement = f"""
        SELECT count(DISTINCT document_id), count(*),
               CASE WHEN count(*) <= :max_count
                    THEN CAST(COALESCE(array_agg(id), '{{}}') AS text) END
        FROM (
            SELECT c.id, c.document_id FROM {_RECORDS}
            WHERE c.collection_id = :collection {condition_of(wanted, binds)}
            LIMIT :max_count + 1
        ) matching
    """
    documents, chunks, ids = session.execute(text(statement), binds).one()
    return EnabledSet(documents, chunks, ids, of_chunks=True)


def records_of_chunks(session: Session, ids: Sequence[UUID]) -> dict[UUID, StoredRecord]:
    statement = """
        SELECT id, external_id, content, metadata FROM document_chunks
        WHERE id = ANY(CAST(:ids AS uuid[]))
    """
    return {
        row.id: StoredRecord(row.external_id, row.content, row.metadata)
        for row in session.execute(text(statement), {"ids": list(ids)})
    }


def _vector(stored: Any) -> Vector | None:
    return None if stored is None else np.asarray(stored, dtype=np.float32)
