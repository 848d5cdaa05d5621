"""The passages of a job, as programs list, add and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Executable, delete, func, select, text, update
from sqlalchemy.orm import Session

from portal.domain.chunks import ChunkOrder, JobChunk
from portal.domain.people import User
from portal.store.documents import vocabulary
from portal.store.documents.rows import PORTAL_COLLECTION
from portal.store.documents.selection import (
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
    visible_to,
)
from portal.store.models import (
    ChunkEmbeddingRow,
    CollectionRow,
    DocumentChunkRow,
    DocumentRow,
    JobRow,
)

_ORDERS = {
    ChunkOrder.CHUNK_INDEX: DocumentChunkRow.chunk_index,
    ChunkOrder.CREATED_AT: DocumentChunkRow.created_at,
}
_HAS_EMBEDDING = (
    select(ChunkEmbeddingRow.chunk_id)
    .where(
        ChunkEmbeddingRow.chunk_id == DocumentChunkRow.id,
        ChunkEmbeddingRow.model_id == CollectionRow.embedding_model_id,
    )
    .correlate(DocumentChunkRow, CollectionRow)
    .exists()
    .label("has_embedding")
)
_CHUNKS = (
    select(DocumentChunkRow, DocumentRow.title, _HAS_EMBEDDING)
    .join(DocumentRow, DocumentRow.id == DocumentChunkRow.document_id)
    .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
)


def find_document_of(session: Session, user: User, job_id: UUID) -> UUID | None:
    """The document of a job that a person may see; None also for one in the trash."""
    return session.scalar(
        select(DocumentRow.id)
        .join(JobRow, JobRow.document_id == DocumentRow.id)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .where(
            JobRow.id == job_id,
            CollectionRow.name == PORTAL_COLLECTION,
            DocumentRow.deleted_at.is_(None),
            DocumentRow.purged_at.is_(None),
            visible_to(user),
        )
    )


def list_chunks(
    session: Session, job_id: UUID, *, order: ChunkOrder, descending: bool, limit: int, offset: int
) -> tuple[tuple[JobChunk, ...], int]:
    """Passages of a job in this order, and how many it has."""
    of_job = DocumentChunkRow.job_id == job_id
    total = session.scalar(select(func.count()).select_from(DocumentChunkRow).where(of_job)) or 0
    # The index is unique in a job, so that pages neither overlap nor leave anything out.
    keys: list[ColumnElement[Any]] = [_ORDERS[order].expression]
    keys.append(DocumentChunkRow.chunk_index.expression)
    ordered = [key.desc() if descending else key.asc() for key in keys]
    rows = _CHUNKS.where(of_job).order_by(*ordered).limit(limit).offset(offset)
    return _fetched(session, rows), total


def find_chunk(session: Session, job_id: UUID, chunk_id: UUID) -> JobChunk | None:
    """One passage of a job."""
    found = _fetched(
        session,
        _CHUNKS.where(DocumentChunkRow.job_id == job_id, DocumentChunkRow.id == chunk_id),
    )
    return found[0] if found else None


def find_searched(session: Session, user: User, chunk_id: UUID) -> JobChunk | None:
    """A passage of what is searched, of a document that a person may see."""
    found = _fetched(
        session,
        _CHUNKS.where(
            DocumentChunkRow.id == chunk_id,
            DocumentChunkRow.job_id == DocumentRow.current_job_id,
            CollectionRow.name == PORTAL_COLLECTION,
            DocumentRow.deleted_at.is_(None),
            visible_to(user),
        ),
    )
    return found[0] if found else None


def read_found(
    session: Session, user: User, conversation_id: UUID | None, chunk_ids: Sequence[UUID]
) -> dict[UUID, JobChunk]:
    """Those of these passages that count for a person at this moment, by their id."""
    counting = text(
        f"""
        SELECT c.id FROM document_chunks c
        JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
        WHERE c.id = ANY(:chunk_ids) AND {SELECTION_WHERE}
        """
    )
    binds = selection_binds(user, conversation_id) | {"chunk_ids": list(chunk_ids)}
    ids = session.scalars(counting, binds).all()
    found = _fetched(session, _CHUNKS.where(DocumentChunkRow.id.in_(ids)))
    return {chunk.id: chunk for chunk in found}


def read_embedding(session: Session, chunk_id: UUID) -> tuple[float, ...] | None:
    """A passage's vector by the model that serves."""
    vector = session.scalar(
        select(ChunkEmbeddingRow.embedding)
        .join(CollectionRow, CollectionRow.embedding_model_id == ChunkEmbeddingRow.model_id)
        .where(ChunkEmbeddingRow.chunk_id == chunk_id, CollectionRow.name == PORTAL_COLLECTION)
    )
    return None if vector is None else tuple(vector)


def _fetched(session: Session, statement: Executable) -> tuple[JobChunk, ...]:
    return tuple(
        JobChunk(
            id=row.id,
            job_id=row.job_id,
            document_id=row.document_id,
            title=title,
            chunk_index=row.chunk_index,
            content=row.content,
            metadata=dict(row.attributes),
            page=row.page,
            heading=row.heading,
            created_at=row.created_at,
            has_embedding=has_embedding,
        )
        for row, title, has_embedding in session.execute(statement)
    )


# --- adding and deleting --------------------------------------------------------------------------


def max_index(session: Session, job_id: UUID) -> int:
    """The last index of a job's passages, -1 of none."""
    highest = session.scalar(
        select(func.max(DocumentChunkRow.chunk_index)).where(DocumentChunkRow.job_id == job_id)
    )
    return -1 if highest is None else highest


def taken_indexes(session: Session, job_id: UUID, wanted: Sequence[int]) -> list[int]:
    """Those of the wanted that a job's passages have already, in order."""
    return list(
        session.scalars(
            select(DocumentChunkRow.chunk_index)
            .where(DocumentChunkRow.job_id == job_id, DocumentChunkRow.chunk_index.in_(wanted))
            .order_by(DocumentChunkRow.chunk_index)
        )
    )


def delete_chunks(
    session: Session, job_id: UUID, *, chunk_id: UUID | None = None, only_added: bool = False
) -> int:
    """Delete a job's passages, or one of them, or those alone that programs added, and the words
    that only they had; gives how many that were."""
    deleted = delete(DocumentChunkRow).where(DocumentChunkRow.job_id == job_id)
    if chunk_id is not None:
        deleted = deleted.where(DocumentChunkRow.id == chunk_id)
    if only_added:
        deleted = deleted.where(DocumentChunkRow.char_start.is_(None))
    rows = session.execute(
        deleted.returning(func.tsvector_to_array(DocumentChunkRow.terms_vector))
    ).scalars()
    terms = [list(one) for one in rows]
    vocabulary.forget_unused(session, sorted({term for one in terms for term in one}))
    return len(terms)


def count_anew(session: Session, document_id: UUID) -> None:
    """Bring a document's number of passages up to date; sets of what counts that were computed
    before are then known to be old, in every process."""
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.id == document_id)
        .values(current_job_id=DocumentRow.current_job_id, updated_at=func.now())
    )
