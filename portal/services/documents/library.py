"""The library: its list, single documents, and trash, restore and purge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from portal.domain.documents import (
    DocumentDetail,
    DocumentFilter,
    DocumentSort,
    DocumentStatus,
    DocumentSummary,
    Heading,
    MediaType,
    StoredChunk,
    Visibility,
)
from portal.domain.paging import CountedPage
from portal.domain.people import User
from portal.errors import AlreadyElsewhere, Forbidden, NotFound, UploadedAgain, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.documents import private_reads, shared_words
from portal.services.documents.erasing import erase_from_answers
from portal.services.transactions import in_transaction, reading
from portal.store.documents import document_lists
from portal.store.documents import folders as folder_store
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import outdated_chunks
from portal.store.documents.ingestion.files import Original
from portal.store.documents.texts import chunks as chunk_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.titles import check_domain, check_tags, check_title

list_news = reading(document_store.list_news)
list_types = in_transaction(document_lists.list_types)
list_domains = in_transaction(document_lists.list_domains)
list_owners = in_transaction(document_lists.list_owners)
list_tags = in_transaction(document_lists.list_tags)
list_summaries = in_transaction(document_store.list_summaries)
list_trash = in_transaction(document_lists.list_trash)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An original file; `parts` yields its bytes in order and must be read to the end or closed."""

    file_name: str
    media_type: MediaType
    size_bytes: int
    parts: Iterator[bytes]


def list_documents(
    services: Services,
    user: User,
    *,
    filters: DocumentFilter | None = None,
    sort: DocumentSort = DocumentSort.NEWEST,
    cursor: str | None = None,
    limit: int = 50,
) -> CountedPage[DocumentSummary]:
    """Return documents visible to the user. Raises MalformedRequest on a bad cursor, NotFound for a
    folder that the user may not see."""
    chosen = filters or DocumentFilter()
    with services.database.begin() as session:
        if chosen.folder_id is not None:
            existing(folder_store.find_folder(session, user, chosen.folder_id))
        return document_lists.list_documents(
            session, user, filters=chosen, sort=sort, cursor=cursor, limit=limit
        )


def is_empty(services: Services, user: User) -> bool:
    """Return whether the user sees no document at all."""
    with services.database.read() as session:
        return not document_store.sees_any(session, user)


def get_document(services: Services, user: User, document_id: UUID) -> DocumentDetail:
    """Return a document. Raises NotFound, also if the user may not see it."""
    with services.database.begin() as session:
        found = existing(document_store.find_detail(session, user, document_id))
    private_reads.record(services, user, [document_id], found=False)
    return found


def get_visible(
    session: Session, user: User, document_id: UUID, *, deleted: bool = False
) -> DocumentSummary:
    """Return a document, or with `deleted` one that the user may restore. Raises NotFound, also if
    the user may not see it."""
    return existing(document_store.find_summary(session, user, document_id, deleted=deleted))


get_summary = in_transaction(get_visible)


def require_visible(session: Session, user: User, document_id: UUID) -> None:
    """Raise NotFound if the user may not see a document."""
    if not document_store.is_visible(session, user, document_id):
        raise NotFound


@contextmanager
def opening(services: Services, user: User, document_id: UUID) -> Iterator[Session]:
    """Open a transaction to read a document's content. The access is then recorded if
    `private_reads` audits it. Raises NotFound."""
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        yield session
    private_reads.record(services, user, [document_id], found=False)


def list_chunks(
    services: Services, user: User, document_id: UUID, *, limit: int = 50, offset: int = 0
) -> tuple[tuple[StoredChunk, ...], int]:
    """Return chunks in reading order, and their total number. Raises NotFound."""
    with opening(services, user, document_id) as session:
        return chunk_store.list_chunks(session, document_id, limit=limit, offset=offset)


def find_chunk(services: Services, user: User, document_id: UUID, chunk_id: UUID) -> StoredChunk:
    """Return one chunk of a document. Raises NotFound."""
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        return existing(chunk_store.find_chunk(session, document_id, chunk_id))


def count_chunks_before(
    services: Services, user: User, document_id: UUID, chunk: StoredChunk
) -> int:
    """Return how many chunks come before this one; indexes may have gaps. Raises NotFound."""
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        return chunk_store.count_before(session, document_id, chunk.chunk.index)


def find_chunk_at(services: Services, user: User, document_id: UUID, position: int) -> StoredChunk:
    """Return the chunk at a character position of the text. Raises NotFound."""
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        return existing(chunk_store.find_chunk_at(session, document_id, position))


def read_text(
    services: Services, user: User, document_id: UUID, *, start: int = 0, end: int | None = None
) -> tuple[UUID, str]:
    """Return the indexed text, or characters `start` to `end`, with its revision. Raises
    NotFound."""
    with opening(services, user, document_id) as session:
        return existing(chunk_store.read_text(session, document_id, start=start, end=end))


def list_headings(
    services: Services, user: User, document_id: UUID, *, limit: int
) -> list[Heading]:
    """Return the first headings of the indexed text, in order. Raises NotFound."""
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        return chunk_store.list_headings(session, document_id, limit=limit)


def open_file(services: Services, user: User, document_id: UUID) -> StoredFile:
    """Open the original of the searchable text, else the last uploaded file. Raises NotFound."""
    with opening(services, user, document_id) as session:
        return as_file(services, existing(file_store.find_original(session, document_id)))


def as_file(services: Services, original: Original) -> StoredFile:
    return StoredFile(
        file_name=original.file_name,
        media_type=original.media_type,
        size_bytes=original.size_bytes,
        parts=_parts(services, original.id),
    )


def _parts(services: Services, file_id: UUID) -> Iterator[bytes]:
    # One short transaction for each part: a slow reader must not hold a connection.
    part_index = 0
    while True:
        with services.database.begin() as session:
            data = file_store.read_part(session, file_id, part_index)
        if data is None:
            return
        yield data
        part_index += 1


def find_editable(session: Session, user: User, document_id: UUID, *, deleted: bool) -> DocumentRow:
    """Return the locked row if the user may change it. Raises NotFound, Forbidden."""
    row = document_store.lock_document(session, document_id)
    if not get_visible(session, user, document_id, deleted=deleted).can_edit:
        raise Forbidden
    return existing(row)


def change_document(
    services: Services,
    user: User,
    document_id: UUID,
    *,
    title: str | None = None,
    domain: str | None = None,
    visibility: Visibility | None = None,
    tags: Sequence[str] | None = None,
) -> None:
    """Change the given fields; an empty domain removes it. Raises NotFound, Forbidden,
    InvalidInput."""
    with shared_words.sharing(services) as session:
        row = find_editable(session, user, document_id, deleted=False)
        if title is not None:
            row.title = check_title(title)
            # The title is part of what chunks are searched by.
            outdated_chunks.mark_outdated(session, document_id)
        if domain is not None:
            row.domain = check_domain(domain)
        if tags is not None:
            row.tags = check_tags(tags)
        if visibility is not None and row.visibility != visibility.value:
            _refuse_keepers(user, row)
            subject = Subject(SubjectKind.DOCUMENT, row.id, row.title)
            audit.record_visibility(session, user, subject, row.visibility, visibility.value)
            row.visibility = visibility.value


def _refuse_keepers(user: User, document: DocumentRow) -> None:
    """Raise Forbidden unless the user is the owner or an administrator: keepers of a folder may
    neither hide nor purge others' documents."""
    if not (user.is_admin or document.owner_id == user.id):
        raise Forbidden


def delete_document(services: Services, user: User, document_id: UUID) -> None:
    """Move a document to the trash, and so out of lists and searches. Raises NotFound,
    Forbidden."""
    with services.database.begin() as session:
        find_editable(session, user, document_id, deleted=False)
        document_store.set_deleted(session, document_id, deleted=True)


def restore_document(services: Services, user: User, document_id: UUID) -> None:
    """Restore a document from the trash. Raises NotFound, Forbidden, and UploadedAgain if its owner
    has uploaded its file, or that of its pending version, again."""
    with shared_words.sharing(services) as session:
        document = find_editable(session, user, document_id, deleted=True)
        _refuse_duplicate(session, document)
        document_store.set_deleted(session, document_id, deleted=False)


def _refuse_duplicate(session: Session, document: DocumentRow) -> None:
    """Raise UploadedAgain if the searched or pending file of a document exists elsewhere."""
    if document.status == DocumentStatus.FAILED:
        return
    pending = find_pending(session, document.id)
    again = _find_elsewhere(session, document, {document.sha256, (pending or document).sha256})
    if again is not None:
        raise UploadedAgain(title=again.title)


def find_pending(session: Session, document_id: UUID) -> Original | None:
    """Return the file that is queued or being read."""
    job = job_store.find_unfinished(session, document_id)
    return file_store.find_original_of_job(session, job.id) if job else None


def refuse_elsewhere(session: Session, user: User, document: DocumentRow, sha256: str) -> None:
    """Raise AlreadyElsewhere if the owner has these bytes in another document that the user may
    see. Locks these bytes for the owner until the transaction ends."""
    other = _find_elsewhere(session, document, {sha256})
    # A keeper of a folder must not learn what its members have elsewhere.
    if other is not None and document_store.is_visible(session, user, other.id):
        raise AlreadyElsewhere(title=other.title)


def _find_elsewhere(
    session: Session, document: DocumentRow, hashes: Set[str]
) -> DocumentRow | None:
    """Return another live document of the same owner with one of these files."""
    if document.owner_id is None:
        return None
    # Lock in the same order as uploads of several files do.
    for sha256 in sorted(hashes):
        document_store.lock_content(session, owner_id=document.owner_id, sha256=sha256)
        other_id = document_store.find_duplicate(
            session, owner_id=document.owner_id, sha256=sha256, other_than=document.id
        )
        if other_id is not None:
            return document_store.get_document(session, other_id)
    return None


def purge_document(services: Services, user: User, document_id: UUID) -> None:
    """Erase a document's text, vectors and file permanently, from the trash or directly. Raises
    NotFound and Forbidden."""
    with services.database.begin() as session:
        in_trash = document_store.find_summary(session, user, document_id, deleted=True)
        document_store.lock_for_purge(session, document_id)
        document = find_editable(session, user, document_id, deleted=in_trash is not None)
        _refuse_keepers(user, document)
        if in_trash is None:
            # A document that is in the trash keeps its deletion date.
            document_store.set_deleted(session, document_id, deleted=True)
        erase(session, document_id, actor=user)


def erase(session: Session, document_id: UUID, *, actor: User | None = None) -> None:
    """Erase a locked document in the trash, and its words wherever they were quoted. Without an
    actor, its time in the trash has expired."""
    row = document_store.get_document(session, document_id)
    audit.record(
        session,
        AuditEvent.DOCUMENT_PURGED,
        actor,
        Subject(SubjectKind.DOCUMENT, document_id, row.title if row else None),
    )
    erase_from_answers(session, document_id)
    document_store.purge(session, document_id)
