"""Passages under their job: listed, read, added and deleted by programs.

Whoever may see a document may read its passages, switched off or not, as on its page; its owner
and administrators add and delete. What is added is searched from that moment on, what is deleted
from that moment on is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from uuid import UUID

from portal.domain.chunks import (
    HIGHEST_INDEX,
    MOST_CHUNKS_ADDED,
    MOST_CONTENT_CHARACTERS,
    MOST_METADATA_CHARACTERS,
    Chunk,
    ChunkOrder,
    ChunkPage,
    NewChunk,
)
from portal.domain.documents import Passage
from portal.domain.json_values import check_json
from portal.domain.people import Person
from portal.errors import ChunkIndexTaken, Conflict, Forbidden, InvalidInput, NotFound
from portal.services import Services
from portal.services.documents import passages
from portal.services.documents.passages import NewPassage, Place
from portal.store.documents import job_chunks
from portal.store.documents import rows as document_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.scripts import has_visible_text


def list_chunks(
    services: Services,
    person: Person,
    job_id: UUID,
    *,
    limit: int,
    offset: int = 0,
    order: ChunkOrder = ChunkOrder.CHUNK_INDEX,
    descending: bool = False,
) -> ChunkPage:
    """Some of a job's passages. Raises NotFound."""
    with services.database.begin() as session:
        _seen(session, person, job_id)
        items, total = job_chunks.list_chunks(
            session, job_id, order=order, descending=descending, limit=limit, offset=offset
        )
    return ChunkPage(items, total)


def get_chunk(services: Services, person: Person, job_id: UUID, chunk_id: UUID) -> Chunk:
    """Raises NotFound."""
    with services.database.begin() as session:
        _seen(session, person, job_id)
        return _found(session, job_id, chunk_id)


def add_chunks(
    services: Services, person: Person, job_id: UUID, new: Sequence[NewChunk]
) -> tuple[Chunk, ...]:
    """Add passages to what is searched of a document, all of them or none; given in order.

    Raises NotFound, Forbidden, InvalidInput, ChunkIndexTaken, Conflict when the job is not the one
    that is searched, EmbedderUnavailable.
    """
    _check(new)
    with services.database.begin() as session:
        # Before anything is embedded: that is slow, and costs money with some.
        document_id = _editable(session, person, job_id).id

    def prepare(session: Session) -> tuple[Place, Sequence[NewPassage]]:
        document = _editable(session, person, job_id)
        place = Place(job_id, document.id, document.collection_id, document.title)
        return place, _numbered(session, job_id, new)

    added: list[Chunk] = []

    def finish(session: Session, place: Place, chunk_ids: Sequence[UUID]) -> None:
        job_chunks.count_anew(session, place.document_id)
        added.extend(_found(session, job_id, chunk_id) for chunk_id in chunk_ids)

    texts = [one.content for one in new]
    passages.store(services, texts, prepare, document_id=document_id, finish=finish)
    return tuple(added)


def delete_chunk(services: Services, person: Person, job_id: UUID, chunk_id: UUID) -> None:
    """Delete a passage for good. Raises NotFound, Forbidden, Conflict as `add_chunks` does."""
    with services.database.begin() as session:
        document = _editable(session, person, job_id)
        if not job_chunks.delete_chunks(session, job_id, chunk_id=chunk_id):
            raise NotFound
        job_chunks.count_anew(session, document.id)


def delete_chunks(
    services: Services, person: Person, job_id: UUID, *, only_added: bool = False
) -> int:
    """Delete all passages of a job for good, or those alone that programs added; gives how many
    that were. The document's text and file stay. Raises as `delete_chunk` does."""
    with services.database.begin() as session:
        document = _editable(session, person, job_id)
        deleted = job_chunks.delete_chunks(session, job_id, only_added=only_added)
        job_chunks.count_anew(session, document.id)
        return deleted


def _seen(session: Session, person: Person, job_id: UUID) -> UUID:
    document_id = job_chunks.find_document_of(session, person, job_id)
    if document_id is None:
        raise NotFound
    return document_id


def _found(session: Session, job_id: UUID, chunk_id: UUID) -> Chunk:
    chunk = job_chunks.find_chunk(session, job_id, chunk_id)
    if chunk is None:
        raise NotFound
    return chunk


def _editable(session: Session, person: Person, job_id: UUID) -> DocumentRow:
    """The job's document, held until the transaction ends, if this person may change it."""
    document = document_store.lock_document(session, _seen(session, person, job_id))
    # Seen before it was locked: it may have gone to the trash while this waited.
    if document is None or document.deleted_at is not None:
        raise NotFound
    if not (person.is_admin or document.owner_id == person.id):
        raise Forbidden
    if document.current_job_id != job_id:
        # A worker may be storing its passages right now, or a newer text has taken its place.
        raise Conflict(reason="this job is not the one whose passages are searched")
    return document


def _check(new: Sequence[NewChunk]) -> None:
    if not 1 <= len(new) <= MOST_CHUNKS_ADDED:
        raise InvalidInput(reason=f"1 to {MOST_CHUNKS_ADDED} passages are added at once")
    for one in new:
        if not has_visible_text(one.content) or len(one.content) > MOST_CONTENT_CHARACTERS:
            raise InvalidInput(
                reason=f"a passage has 1 to {MOST_CONTENT_CHARACTERS} characters, and some of them "
                "show"
            )
        check_json(dict(one.metadata), most_characters=MOST_METADATA_CHARACTERS)
        if one.chunk_index is not None and not 0 <= one.chunk_index <= HIGHEST_INDEX:
            raise InvalidInput(reason=f"chunk_index is 0 to {HIGHEST_INDEX}")


def _numbered(session: Session, job_id: UUID, new: Sequence[NewChunk]) -> list[NewPassage]:
    """The passages with their places: those wished for, for others the ones behind the last."""
    wanted = [one.chunk_index for one in new if one.chunk_index is not None]
    taken = job_chunks.taken_indexes(session, job_id, wanted)
    taken += [index for index in wanted if wanted.count(index) > 1]
    if taken:
        raise ChunkIndexTaken(index=taken[0])
    behind = count(max([job_chunks.highest_index(session, job_id), *wanted]) + 1)
    return [
        NewPassage(
            Passage(
                index=next(behind) if one.chunk_index is None else one.chunk_index,
                content=one.content,
                char_start=None,
                char_end=None,
            ),
            one.metadata,
        )
        for one in new
    ]
