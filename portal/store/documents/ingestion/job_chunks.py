"""The chunks of a job, as API clients list, read, add and delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Executable, func, select, text, update
from sqlalchemy.orm import Session

from portal.domain.documents.chunks import ChunkOrder, JobChunk
from portal.domain.people import User
from portal.store.documents.selection import (
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    listed_for,
    selection_binds,
)
from portal.store.documents.texts import chunks
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
# The fields of JobChunk, in order.
_CHUNKS = (
    select(
        DocumentChunkRow.id,
        DocumentChunkRow.job_id,
        DocumentChunkRow.document_id,
        DocumentRow.title,
        DocumentChunkRow.chunk_index,
        DocumentChunkRow.content,
        DocumentChunkRow.attributes,
        DocumentChunkRow.page,
        DocumentChunkRow.heading,
        DocumentChunkRow.context,
        DocumentChunkRow.created_at,
        _HAS_EMBEDDING,
    )
    .join(DocumentRow, DocumentRow.id == DocumentChunkRow.document_id)
    .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
)


def find_document_of(session: Session, user: User, job_id: UUID) -> UUID | None:
    """Return the document of a job visible to the user; None also if it is in the trash."""
    return session.scalar(
        select(DocumentRow.id)
        .join(JobRow, JobRow.document_id == DocumentRow.id)
        .where(JobRow.id == job_id, listed_for(user))
    )


def list_chunks(
    session: Session, job_id: UUID, *, order: ChunkOrder, descending: bool, limit: int, offset: int
) -> tuple[tuple[JobChunk, ...], int]:
    """Return a page of a job's chunks in this order, and their total number."""
    of_job = DocumentChunkRow.job_id == job_id
    total = session.scalar(select(func.count()).select_from(DocumentChunkRow).where(of_job)) or 0
    # The index is unique in a job, so pages neither overlap nor leave gaps.
    keys: list[ColumnElement[Any]] = [_ORDERS[order].expression]
    keys.append(DocumentChunkRow.chunk_index.expression)
    ordered = [key.desc() if descending else key.asc() for key in keys]
    rows = _CHUNKS.where(of_job).order_by(*ordered).limit(limit).offset(offset)
    return _fetch(session, rows), total


def find_chunk(session: Session, job_id: UUID, chunk_id: UUID) -> JobChunk | None:
    """Return one chunk of a job."""
    one = _CHUNKS.where(DocumentChunkRow.job_id == job_id, DocumentChunkRow.id == chunk_id)
    found = _fetch(session, one)
    return found[0] if found else None


def find_searched(session: Session, user: User, chunk_id: UUID) -> JobChunk | None:
    """Return a searchable chunk of a document visible to the user."""
    is_searched = DocumentChunkRow.job_id == DocumentRow.current_job_id
    one = _CHUNKS.where(DocumentChunkRow.id == chunk_id, is_searched, listed_for(user))
    found = _fetch(session, one)
    return found[0] if found else None


def read_found(
    session: Session, user: User, conversation_id: UUID | None, chunk_ids: Sequence[UUID]
) -> dict[UUID, JobChunk]:
    """Return the chunks with these ids that are enabled for the user now, by id."""
    counting = text(
        f"""
        SELECT c.id FROM document_chunks c
        JOIN documents d ON d.current_job_id = c.job_id {SELECTION_JOINS}
        WHERE c.id = ANY(:chunk_ids) AND {SELECTION_WHERE}
        """
    )
    binds = selection_binds(user, conversation_id) | {"chunk_ids": list(chunk_ids)}
    ids = session.scalars(counting, binds).all()
    found = _fetch(session, _CHUNKS.where(DocumentChunkRow.id.in_(ids)))
    return {chunk.id: chunk for chunk in found}


def read_embedding(session: Session, chunk_id: UUID) -> tuple[float, ...] | None:
    """Return a chunk's vector by the active model."""
    vector = session.scalar(
        select(ChunkEmbeddingRow.embedding)
        .join(CollectionRow, CollectionRow.embedding_model_id == ChunkEmbeddingRow.model_id)
        .where(ChunkEmbeddingRow.chunk_id == chunk_id, CollectionRow.name == PORTAL_COLLECTION)
    )
    return None if vector is None else tuple(vector)


def _fetch(session: Session, statement: Executable) -> tuple[JobChunk, ...]:
    return tuple(JobChunk(*row) for row in session.execute(statement))


# --- adding and deleting --------------------------------------------------------------------------


def max_index(session: Session, job_id: UUID) -> int:
    """Return the highest index of a job's chunks, -1 if there are none."""
    highest = session.scalar(
        select(func.max(DocumentChunkRow.chunk_index)).where(DocumentChunkRow.job_id == job_id)
    )
    return -1 if highest is None else highest


def taken_indexes(session: Session, job_id: UUID, wanted: Sequence[int]) -> list[int]:
    """Return the wanted indexes that a job's chunks have already, sorted."""
    index = DocumentChunkRow.chunk_index
    taken = select(index).where(DocumentChunkRow.job_id == job_id, index.in_(wanted))
    return list(session.scalars(taken.order_by(index)))


def delete_chunks(
    session: Session, job_id: UUID, *, chunk_id: UUID | None = None, only_added: bool = False
) -> int:
    """Delete a job's chunks, one of them, or only those added through the API. Return the number of
    deleted chunks."""
    which = [DocumentChunkRow.job_id == job_id]
    if chunk_id is not None:
        which.append(DocumentChunkRow.id == chunk_id)
    if only_added:
        which.append(DocumentChunkRow.char_start.is_(None))
    return chunks.delete_chunks(session, *which)


def update_count(session: Session, document_id: UUID) -> None:
    """Update a document's chunk count. This invalidates cached selections in every process."""
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.id == document_id)
        .values(current_job_id=DocumentRow.current_job_id, updated_at=func.now())
    )
