"""Chunks of a job, as API clients list, read, add and delete them.

Users who may see a document may read its chunks, enabled or not; those who may change it add and
delete them. Additions and deletions take effect in search at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from uuid import UUID

from portal.domain.documents import Chunk
from portal.domain.documents.chunks import (
    MAX_CHUNK_INDEX,
    MAX_CHUNKS_ADDED,
    MAX_CONTENT_CHARACTERS,
    MAX_METADATA_CHARACTERS,
    ChunkOrder,
    JobChunk,
    NewChunk,
)
from portal.domain.json_values import check_json
from portal.domain.people import User
from portal.errors import ChunkIndexTaken, Conflict, Forbidden, InvalidInput, NotFound, existing
from portal.services import Services
from portal.services.documents import library, private_reads
from portal.services.documents.ingestion import chunk_storage
from portal.services.documents.ingestion.chunk_storage import ChunkOwner, ChunkToStore
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import job_chunks
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.characters.scripts import has_visible_text


def list_chunks(
    services: Services,
    user: User,
    job_id: UUID,
    *,
    limit: int,
    offset: int = 0,
    order: ChunkOrder = ChunkOrder.CHUNK_INDEX,
    descending: bool = False,
) -> tuple[tuple[JobChunk, ...], int]:
    """Return a page of a job's chunks, and their total number. Raises NotFound."""
    with services.database.begin() as session:
        document_id = _find_document(session, user, job_id)
        found = job_chunks.list_chunks(
            session, job_id, order=order, descending=descending, limit=limit, offset=offset
        )
    private_reads.record(services, user, [document_id], found=False)
    return found


def get_chunk(services: Services, user: User, job_id: UUID, chunk_id: UUID) -> JobChunk:
    """Return one chunk of a job. Raises NotFound."""
    with services.database.begin() as session:
        document_id = _find_document(session, user, job_id)
        found = _found(session, job_id, chunk_id)
    private_reads.record(services, user, [document_id], found=False)
    return found


def add_chunks(
    services: Services, user: User, job_id: UUID, new: Sequence[NewChunk]
) -> tuple[JobChunk, ...]:
    """Add chunks to the searchable text of a document, all or none; return them in order. Raises
    NotFound, Forbidden, InvalidInput, ChunkIndexTaken, Conflict when the job is not the one that is
    searched, EmbedderUnavailable."""
    _check(new)
    with services.database.begin() as session:
        # Check this first: embedding is slow, and some providers charge for it.
        document_id = _lock_editable(session, user, job_id).id

    def prepare(session: Session) -> tuple[ChunkOwner, Sequence[ChunkToStore]]:
        document = _lock_editable(session, user, job_id)
        owner = ChunkOwner(job_id, document.id, document.collection_id, document.title)
        return owner, _numbered(session, job_id, new)

    added: list[JobChunk] = []

    def finish(session: Session, owner: ChunkOwner, chunk_ids: Sequence[UUID]) -> None:
        job_chunks.update_count(session, owner.document_id)
        added.extend(_found(session, job_id, chunk_id) for chunk_id in chunk_ids)

    texts = [chunk.content for chunk in new]
    chunk_storage.store(services, texts, prepare, document_id=document_id, finish=finish)
    return tuple(added)


def delete_chunk(services: Services, user: User, job_id: UUID, chunk_id: UUID) -> None:
    """Delete a chunk permanently. Raises NotFound, Forbidden, Conflict as `add_chunks` does."""
    with services.database.begin() as session:
        document = _lock_editable(session, user, job_id)
        if not job_chunks.delete_chunks(session, job_id, chunk_id=chunk_id):
            raise NotFound
        job_chunks.update_count(session, document.id)


def delete_chunks(services: Services, user: User, job_id: UUID, *, only_added: bool = False) -> int:
    """Delete all chunks of a job permanently, or only those added through the API. Return their
    number. The document's text and file stay. Raises as `delete_chunk` does."""
    with services.database.begin() as session:
        document = _lock_editable(session, user, job_id)
        deleted = job_chunks.delete_chunks(session, job_id, only_added=only_added)
        job_chunks.update_count(session, document.id)
        return deleted


def _find_document(session: Session, user: User, job_id: UUID) -> UUID:
    return existing(job_chunks.find_document_of(session, user, job_id))


def _found(session: Session, job_id: UUID, chunk_id: UUID) -> JobChunk:
    return existing(job_chunks.find_chunk(session, job_id, chunk_id))


def _lock_editable(session: Session, user: User, job_id: UUID) -> DocumentRow:
    """Return the job's document, locked, if the user may change it."""
    document = document_store.lock_document(session, _find_document(session, user, job_id))
    # The document may have gone to the trash while this waited for the lock.
    if document is None or document.deleted_at is not None:
        raise NotFound
    if not library.get_visible(session, user, document.id).can_edit:
        raise Forbidden
    if document.current_job_id != job_id:
        # A worker may be storing this job's chunks now, or a newer text has replaced them.
        raise Conflict("this job is not the one whose passages are searched")
    return document


def _check(new: Sequence[NewChunk]) -> None:
    if not 1 <= len(new) <= MAX_CHUNKS_ADDED:
        raise InvalidInput("1 to %(max)s passages are added at once", max=MAX_CHUNKS_ADDED)
    for chunk in new:
        if not has_visible_text(chunk.content) or len(chunk.content) > MAX_CONTENT_CHARACTERS:
            raise InvalidInput(
                "a passage must have 1 to %(max)s characters, at least one of them visible",
                max=MAX_CONTENT_CHARACTERS,
            )
        check_json(dict(chunk.metadata), max_characters=MAX_METADATA_CHARACTERS)
        if chunk.chunk_index is not None and not 0 <= chunk.chunk_index <= MAX_CHUNK_INDEX:
            raise InvalidInput("chunk_index is 0 to %(max)s", max=MAX_CHUNK_INDEX)


def _numbered(session: Session, job_id: UUID, new: Sequence[NewChunk]) -> list[ChunkToStore]:
    """Return the chunks with their indexes: the requested ones, or the next free ones."""
    wanted = [chunk.chunk_index for chunk in new if chunk.chunk_index is not None]
    taken = job_chunks.taken_indexes(session, job_id, wanted)
    taken += [index for index in wanted if wanted.count(index) > 1]
    if taken:
        raise ChunkIndexTaken(index=taken[0])
    behind = count(max([job_chunks.max_index(session, job_id), *wanted]) + 1)
    return [
        ChunkToStore(
            Chunk(
                index=next(behind) if chunk.chunk_index is None else chunk.chunk_index,
                content=chunk.content,
                char_start=None,
                char_end=None,
            ),
            chunk.metadata,
        )
        for chunk in new
    ]
