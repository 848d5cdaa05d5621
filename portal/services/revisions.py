"""New versions of a document's file, the texts that it has had, and what tells these apart.

Whoever may see a document may read all of its revisions: answers cite them. Only its owner and
administrators add one (docs/revisions.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure
from portal.domain.jobs import ENDED_WITHOUT_TEXT, UNFINISHED
from portal.domain.people import Person
from portal.domain.revisions import Revision, RevisionPage, UnreadVersion
from portal.errors import AlreadyElsewhere, Conflict, NotFound, Superseded, TextsTooLong
from portal.services import Services, attempts, disk_space, library, quotas, uploads
from portal.services.adopting import adopt
from portal.services.library import StoredFile, editable
from portal.services.revision_changes import MOST_CHARACTERS
from portal.services.uploads import CheckedFile, Upload, UploadReceipt
from portal.store import documents as document_store
from portal.store import files as file_store
from portal.store import jobs as job_store
from portal.store import revisions as revision_store
from portal.store.models import DocumentRow, JobRow
from portal.store.session import Session
from portal.text.differences import Piece, differences


def add_version(
    services: Services, person: Person, document_id: UUID, upload: Upload
) -> UploadReceipt:
    """Store another file of a document and queue its ingestion. Until it is done the present text
    is searched; the bytes that are there, or are being read already, are said to be so.

    A version that is still being read gives way to this one. Raises NotFound, Forbidden, what
    `uploads.store_upload` raises, and AlreadyElsewhere for the file of another document.
    """
    with services.database.begin() as session:
        editable(session, person, document_id, deleted=False)
    file = uploads.check(services, upload)
    disk_space.expect_room_for(services, file.size_bytes)
    with services.database.begin() as session:
        document = editable(session, person, document_id, deleted=False)
        is_new = _take(services, session, person, document, file)
        summary = library.seen(session, person, document_id)
        return UploadReceipt(summary, is_duplicate=not is_new)


def _take(
    services: Services, session: Session, person: Person, document: DocumentRow, file: CheckedFile
) -> bool:
    """Store and queue a file of a locked document; False where it has these bytes already."""
    pending = _unfinished(session, document)
    original = file_store.find_original_of_job(session, pending.id) if pending else None
    if original is not None and original.sha256 == file.sha256:
        return False
    if document.current_job_id is not None and document.sha256 == file.sha256:
        # Back to what is searched now: what was on its way is not wanted any more.
        if attempts.cancel(session, document, Failure(Superseded.code)):
            revision_store.delete_unread(session, document)
        return False
    _refuse_elsewhere(session, document, file)
    attempts.cancel(session, document, Failure(Superseded.code))
    job_id = _store(services, session, person, document, file)
    if document.current_job_id is None:
        adopt(session, document.id, job_id, analysed_as=document.title)
        document_store.set_status(session, document.id, DocumentStatus.QUEUED)
    return True


def _store(
    services: Services, session: Session, person: Person, document: DocumentRow, file: CheckedFile
) -> UUID:
    """The id of the job that is to read it. The owner's quota is what counts."""
    owner_id = document.owner_id or person.id
    size_bytes = file.size_bytes
    with quotas.room_for(services, session, owner_id, name=file.file_name, size_bytes=size_bytes):
        file_id, _, _ = file_store.add_file(
            session,
            file.stream,
            file_name=file.file_name,
            media_type=file.media_type,
            uploaded_by=person.id,
        )
        return job_store.add_job(
            session,
            document_id=document.id,
            file_id=file_id,
            config={"uploaded_by": str(person.id)},
        )


def _unfinished(session: Session, document: DocumentRow) -> JobRow | None:
    job = job_store.find_newest(session, document.id)
    return job if job is not None and job.status in UNFINISHED else None


def _refuse_elsewhere(session: Session, document: DocumentRow, file: CheckedFile) -> None:
    """An owner has the same bytes in one document only, as with uploads."""
    if document.owner_id is None:
        return
    owner_id, sha256 = document.owner_id, file.sha256
    document_store.lock_content(session, owner_id=owner_id, sha256=sha256)
    other_id = document_store.find_duplicate(
        session, owner_id=owner_id, sha256=sha256, other_than=document.id
    )
    other = document_store.get_document(session, other_id) if other_id else None
    if other is not None:
        raise AlreadyElsewhere(title=other.title)


def discard_unread(services: Services, person: Person, document_id: UUID) -> None:
    """Erase a version that failed or was cancelled, with its file: the document is what it was
    before. Raises NotFound, Forbidden, Conflict where there is none."""
    with services.database.begin() as session:
        document = editable(session, person, document_id, deleted=False)
        unread = revision_store.find_unread(session, document_id)
        if unread is None or unread.status not in ENDED_WITHOUT_TEXT:
            raise Conflict(reason="no new version of this document has failed or was cancelled")
        revision_store.delete_unread(session, document)


def find_unread(services: Services, person: Person, document_id: UUID) -> UnreadVersion | None:
    """What was begun after the text that is searched, if anything. Raises NotFound."""
    with services.database.begin() as session:
        library.seen(session, person, document_id)
        return revision_store.find_unread(session, document_id)


def list_revisions(
    services: Services,
    person: Person,
    document_id: UUID,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> RevisionPage:
    """A document's revisions, the latest first. Raises NotFound, MalformedRequest on a bad
    cursor."""
    with services.database.begin() as session:
        library.seen(session, person, document_id)
        return revision_store.list_revisions(session, document_id, cursor=cursor, limit=limit)


def get_revision(services: Services, person: Person, document_id: UUID, number: int) -> Revision:
    """Raises NotFound."""
    with services.database.begin() as session:
        return _revision(session, person, document_id, number)


def find_number(
    services: Services, person: Person, document_id: UUID, revision_id: UUID
) -> int | None:
    """Which of a document's revisions this is. Raises NotFound for the document."""
    with services.database.begin() as session:
        library.seen(session, person, document_id)
        return revision_store.find_number(session, document_id, revision_id)


def read_text(
    services: Services,
    person: Person,
    document_id: UUID,
    number: int,
    *,
    start: int = 0,
    length: int | None = None,
) -> tuple[Revision, str]:
    """A revision and its text, or `length` characters of it from `start` on. Raises NotFound."""
    with services.database.begin() as session:
        revision = _revision(session, person, document_id, number)
        body = revision_store.read_body(session, revision.id, start=start, length=length)
    return revision, body


def open_file(services: Services, person: Person, document_id: UUID, number: int) -> StoredFile:
    """The file that a revision was read from. Raises NotFound."""
    with services.database.begin() as session:
        revision = _revision(session, person, document_id, number)
        original = revision_store.find_original(session, document_id, revision.id)
    if original is None:
        raise NotFound
    return library.as_file(services, original)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What leads from the text `against` to that of `revision`."""

    revision: Revision
    against: Revision
    pieces: tuple[Piece, ...]


def compare(
    services: Services, person: Person, document_id: UUID, number: int, *, against: int | None
) -> Comparison:
    """What tells a revision from another one, by default the one before. Raises NotFound,
    TextsTooLong."""
    with services.database.begin() as session:
        new = _revision(session, person, document_id, number)
        if against is None:
            against = new.previous
        if against is None:
            raise NotFound
        old = _revision(session, person, document_id, against)
        characters = new.character_count + old.character_count
        if characters > MOST_CHARACTERS:
            raise TextsTooLong(characters=characters, limit=MOST_CHARACTERS)
        texts = [revision_store.read_body(session, one.id) for one in (old, new)]
    # Outside of the transaction: it may take a second.
    return Comparison(new, old, tuple(differences(*texts)))


def _revision(session: Session, person: Person, document_id: UUID, number: int) -> Revision:
    library.seen(session, person, document_id)
    found = revision_store.find_revision(session, document_id, number)
    if found is None:
        raise NotFound
    return found
