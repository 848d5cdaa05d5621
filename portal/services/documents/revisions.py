"""New versions of a document's file, the texts that it has had, and what tells these apart.

Whoever may see a document may read all of its revisions: answers cite them. Only its owner and
administrators add one (docs/documents.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure
from portal.domain.jobs import ENDED_WITHOUT_TEXT
from portal.domain.people import User
from portal.domain.revisions import Revision, RevisionPage, UnreadVersion
from portal.errors import N_, Conflict, NotFound, Superseded
from portal.services import Services
from portal.services.documents import attempts, disk_space, library, quotas, uploads
from portal.services.documents.adopting import adopt
from portal.services.documents.comparisons import expect_short
from portal.services.documents.library import StoredFile, editable, refuse_elsewhere
from portal.services.documents.uploads import CheckedFile, Upload, UploadReceipt
from portal.store.documents import jobs as job_store
from portal.store.documents import revisions as revision_store
from portal.store.documents import rows as document_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.differences import Piece


class Taken(StrEnum):
    """What came of a file that was sent as a new version."""

    QUEUED = "queued"
    UNDER_WAY = "under_way"
    """It was sent before, and waits or is being read: nothing to do."""
    PRESENT = "present"
    """It is the one that is searched: nothing to do."""
    TAKEN_BACK = "taken_back"
    """It is the one that is searched; another that was being read is cancelled and erased."""


@dataclass(frozen=True, slots=True)
class VersionReceipt(UploadReceipt):
    """What came of an upload; `is_duplicate` unless it was queued."""

    taken: Taken


def add_version(
    services: Services, user: User, document_id: UUID, upload: Upload
) -> VersionReceipt:
    """Store another file of a document and queue its ingestion. Until it is done the present text
    is searched; the bytes that are there, or are being read already, are said to be so.

    A version that is still being read gives way to this one. Raises NotFound, Forbidden, what
    `uploads.store_upload` raises, and AlreadyElsewhere for the file of another document.
    """
    with services.database.begin() as session:
        editable(session, user, document_id, deleted=False)
    file = uploads.check(services, user, upload)
    room = disk_space.room_for(services, file.size_bytes)
    with room, services.database.begin() as session:
        document = editable(session, user, document_id, deleted=False)
        taken = _take(services, session, user, document, file)
        summary = library.seen(session, user, document_id)
        return VersionReceipt(summary, is_duplicate=taken is not Taken.QUEUED, taken=taken)


def _take(
    services: Services, session: Session, user: User, document: DocumentRow, file: CheckedFile
) -> Taken:
    """Store and queue a file of a locked document, unless it has these bytes already."""
    pending = library.find_pending(session, document.id)
    if pending is not None and pending.sha256 == file.sha256:
        return Taken.UNDER_WAY
    if document.current_job_id is not None and document.sha256 == file.sha256:
        # Back to what is searched now: what was on its way is not wanted any more.
        if not attempts.cancel(session, document, Failure(Superseded.code)):
            return Taken.PRESENT
        revision_store.delete_unread(session, document)
        return Taken.TAKEN_BACK
    refuse_elsewhere(session, document, file.sha256)
    attempts.cancel(session, document, Failure(Superseded.code))
    job_id = _store(services, session, user, document, file)
    if document.current_job_id is None:
        adopt(session, document.id, job_id, analysed_as=document.title)
        document_store.set_status(session, document.id, DocumentStatus.QUEUED)
    return Taken.QUEUED


def _store(
    services: Services, session: Session, user: User, document: DocumentRow, file: CheckedFile
) -> UUID:
    """The id of the job that is to read it. The owner's quota is what counts."""
    owner_id = document.owner_id or user.id
    size_bytes = file.size_bytes
    with quotas.room_for(services, session, owner_id, name=file.file_name, size_bytes=size_bytes):
        return job_store.add_job(
            session,
            document_id=document.id,
            file_id=uploads.keep_original(session, user, file),
        )


def discard_unread(services: Services, user: User, document_id: UUID) -> None:
    """Erase a version that failed or was cancelled, with its file: the document is what it was
    before. Raises NotFound, Forbidden, Conflict where there is none."""
    with services.database.begin() as session:
        document = editable(session, user, document_id, deleted=False)
        unread = revision_store.find_unread(session, document_id)
        if unread is None or unread.status not in ENDED_WITHOUT_TEXT:
            raise Conflict(reason=N_("this document has no failed or cancelled version"))
        revision_store.delete_unread(session, document)


def find_unread(services: Services, user: User, document_id: UUID) -> UnreadVersion | None:
    """What was begun after the text that is searched, if anything. Raises NotFound."""
    with services.database.begin() as session:
        library.seen(session, user, document_id)
        return revision_store.find_unread(session, document_id)


def list_revisions(
    services: Services,
    user: User,
    document_id: UUID,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> RevisionPage:
    """A document's revisions, the latest first. Raises NotFound, MalformedRequest on a bad
    cursor."""
    with services.database.begin() as session:
        library.seen(session, user, document_id)
        return revision_store.list_revisions(session, document_id, cursor=cursor, limit=limit)


def get_revision(services: Services, user: User, document_id: UUID, number: int) -> Revision:
    """Raises NotFound."""
    with services.database.begin() as session:
        return _revision(session, user, document_id, number)


def find_number(services: Services, user: User, document_id: UUID, revision_id: UUID) -> int | None:
    """Which of a document's revisions this is. Raises NotFound for the document."""
    with services.database.begin() as session:
        library.seen(session, user, document_id)
        return revision_store.find_number(session, document_id, revision_id)


def read_text(
    services: Services,
    user: User,
    document_id: UUID,
    number: int,
    *,
    start: int = 0,
    end: int | None = None,
) -> tuple[Revision, str]:
    """A revision and its text, or characters `start` to `end` of it. Raises NotFound."""
    with services.database.begin() as session:
        revision = _revision(session, user, document_id, number)
        return revision, _body(session, revision, start=start, end=end)


def open_file(services: Services, user: User, document_id: UUID, number: int) -> StoredFile:
    """The file that a revision was read from. Raises NotFound."""
    with services.database.begin() as session:
        revision = _revision(session, user, document_id, number)
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
    services: Services, user: User, document_id: UUID, number: int, *, against: int | None
) -> Comparison:
    """What tells a revision from another one, by default the one before. Raises NotFound,
    TextsTooLong, TooManyLines, and Overloaded while others are compared."""
    with services.database.begin() as session:
        new = _revision(session, user, document_id, number)
        if against is None:
            against = new.previous
        if against is None:
            raise NotFound
        old = _revision(session, user, document_id, against)
    expect_short(old.character_count + new.character_count)
    # Outside of the transaction: it may take seconds.
    pieces = services.comparisons.find(old.id, new.id, lambda: _texts(services, old, new))
    return Comparison(new, old, pieces)


def _texts(services: Services, old: Revision, new: Revision) -> tuple[str, str]:
    with services.database.begin() as session:
        return _body(session, old), _body(session, new)


def _body(session: Session, revision: Revision, *, start: int = 0, end: int | None = None) -> str:
    """Raises NotFound where it was purged since it was seen."""
    body = revision_store.read_body(session, revision.id, start=start, end=end)
    if body is None:
        raise NotFound
    return body


def _revision(session: Session, user: User, document_id: UUID, number: int) -> Revision:
    library.seen(session, user, document_id)
    found = revision_store.find_revision(session, document_id, number)
    if found is None:
        raise NotFound
    return found
