"""New versions of a document's file, its earlier texts, and the differences between them.

Users who may see a document may read all of its revisions, because answers cite them. Those who may
change it may add one (docs/documents.md).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure
from portal.domain.documents.jobs import ENDED_WITHOUT_TEXT
from portal.domain.documents.revisions import Revision, UnreadVersion
from portal.domain.documents.structure import LaidOutText
from portal.domain.paging import CountedPage
from portal.domain.people import User
from portal.errors import Conflict, OwnerQuotaExceeded, QuotaExceeded, Superseded, existing
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.ingestion import attempts
from portal.services.documents.ingestion.adopting import adopt
from portal.services.documents.intake import disk_space, quotas, uploads
from portal.services.documents.intake.uploads import CheckedFile, Upload, UploadReceipt
from portal.services.documents.library import StoredFile, find_editable, refuse_elsewhere
from portal.services.documents.versions.comparisons import require_comparable_length
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.texts import revisions as revision_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.likeness.differences import Piece
from portal.text.likeness.stretches import PART_CHARACTERS

# Longer lines are cut where a part ends.
_MAX_LINE = 2000


class VersionOutcome(StrEnum):
    """The outcome of uploading a file as a new version."""

    QUEUED = "queued"
    UNDER_WAY = "under_way"
    """Uploaded before, and queued or being read: nothing to do."""
    PRESENT = "present"
    """Already the searchable one: nothing to do."""
    TAKEN_BACK = "taken_back"
    """Already the searchable one; another version that was being read is cancelled and erased."""


@dataclass(frozen=True, slots=True)
class VersionReceipt(UploadReceipt):
    """The result of an upload; `is_duplicate` unless it was queued."""

    taken: VersionOutcome


def add_version(
    services: Services, user: User, document_id: UUID, upload: Upload
) -> VersionReceipt:
    """Store a new version of a document's file and queue its ingestion.

    The current text is searched until then. A file that is already searched or being read is
    reported as a duplicate. A version that is still being read is replaced by this one. Raises
    NotFound, Forbidden, what `uploads.store_upload` raises, and AlreadyElsewhere for the file of
    another document.
    """
    with services.database.begin() as session:
        find_editable(session, user, document_id, deleted=False)
    file = uploads.check(services, user, upload)
    room = disk_space.room_for(services, file.size_bytes)
    with room, services.database.begin() as session:
        document = find_editable(session, user, document_id, deleted=False)
        taken = _take(services, session, user, document, file)
        summary = library.get_visible(session, user, document_id)
        return VersionReceipt(summary, is_duplicate=taken is not VersionOutcome.QUEUED, taken=taken)


def restore(services: Services, user: User, document_id: UUID, number: int) -> VersionReceipt:
    """Make the file of an earlier version the newest one. Raises NotFound, and what `add_version`
    raises."""
    with services.database.begin() as session:
        find_editable(session, user, document_id, deleted=False)
    stored = open_file(services, user, document_id, number)
    with tempfile.TemporaryFile(dir=disk_space.temporary_dir(services.settings)) as copy:
        copy.writelines(stored.parts)
        copy.seek(0)
        return add_version(services, user, document_id, Upload(copy, stored.file_name))


def _take(
    services: Services, session: Session, user: User, document: DocumentRow, file: CheckedFile
) -> VersionOutcome:
    """Store and queue a file of a locked document, unless it has these bytes already."""
    pending = library.find_pending(session, document.id)
    if pending is not None and pending.sha256 == file.sha256:
        return VersionOutcome.UNDER_WAY
    if document.current_job_id is not None and document.sha256 == file.sha256:
        # The user went back to the searchable version, so the pending one is dropped.
        if not attempts.cancel(session, document, Failure(Superseded.code)):
            return VersionOutcome.PRESENT
        revision_store.delete_unread(session, document)
        return VersionOutcome.TAKEN_BACK
    refuse_elsewhere(session, user, document, file.sha256)
    attempts.cancel(session, document, Failure(Superseded.code))
    job_id = _store(services, session, user, document, file)
    if document.current_job_id is None:
        adopt(session, document, job_id, analysed_as=document.title)
        document_store.set_status(session, document, DocumentStatus.QUEUED)
    return VersionOutcome.QUEUED


def _store(
    services: Services, session: Session, user: User, document: DocumentRow, file: CheckedFile
) -> UUID:
    """Store a file and return the id of its job; it counts against the owner's quota."""
    owner_id = document.owner_id or user.id
    name, size_bytes = file.file_name, file.size_bytes
    try:
        with quotas.room_for(services, session, owner_id, name=name, size_bytes=size_bytes):
            file_id = uploads.store_original(session, user, file)
            return job_store.add_job(session, document_id=document.id, file_id=file_id)
    except QuotaExceeded:
        # How much other users store is private.
        if owner_id == user.id or user.is_admin:
            raise
        raise OwnerQuotaExceeded(name=name) from None


def discard_unread(services: Services, user: User, document_id: UUID) -> None:
    """Erase a failed or cancelled version with its file; the document stays as it was before.
    Raises NotFound, Forbidden, Conflict if there is none."""
    with services.database.begin() as session:
        document = find_editable(session, user, document_id, deleted=False)
        unread = revision_store.find_unread(session, document_id)
        if unread is None or unread.status not in ENDED_WITHOUT_TEXT:
            raise Conflict("this document has no failed or cancelled version")
        revision_store.delete_unread(session, document)


def find_unread(services: Services, user: User, document_id: UUID) -> UnreadVersion | None:
    """Return the version that was begun after the searchable text, if any. Raises NotFound."""
    with services.database.begin() as session:
        library.require_visible(session, user, document_id)
        return revision_store.find_unread(session, document_id)


def list_revisions(
    services: Services, user: User, document_id: UUID, *, cursor: str | None = None, limit: int = 50
) -> CountedPage[Revision]:
    """Return a document's revisions, latest first. Raises NotFound, MalformedRequest on a bad
    cursor."""
    with services.database.begin() as session:
        library.require_visible(session, user, document_id)
        return revision_store.list_revisions(session, document_id, cursor=cursor, limit=limit)


def get_revision(services: Services, user: User, document_id: UUID, number: int) -> Revision:
    """Return one revision of a document. Raises NotFound."""
    with services.database.begin() as session:
        library.require_visible(session, user, document_id)
        return _revision(session, document_id, number)


def find_number(services: Services, user: User, document_id: UUID, revision_id: UUID) -> int | None:
    """Return the number of a revision in its document. Raises NotFound for the document."""
    with services.database.begin() as session:
        library.require_visible(session, user, document_id)
        return revision_store.find_number(session, document_id, revision_id)


def read_text(
    services: Services, user: User, document_id: UUID, number: int
) -> tuple[Revision, str]:
    """Return a revision and its text. Raises NotFound."""
    with library.opening(services, user, document_id) as session:
        revision = _revision(session, document_id, number)
        return revision, _body(session, revision)


def read_part(
    services: Services, user: User, document_id: UUID, number: int, part: int
) -> LaidOutText:
    """Return a part of a revision; `part` counts from 1. Parts are cut between lines. Raises
    NotFound."""
    start = (part - 1) * PART_CHARACTERS
    end = start + PART_CHARACTERS
    with library.opening(services, user, document_id) as session:
        revision = _revision(session, document_id, number)
        text = existing(
            revision_store.read_laid_out(session, revision.id, start=start, end=end + _MAX_LINE)
        )
    first = _line_after(text.content, 0) if start else 0
    return text.between(first, _line_after(text.content, PART_CHARACTERS))


def _line_after(text: str, place: int) -> int:
    """Return where the first line after `place` begins; `place` itself if that is too far."""
    found = text.find("\n", place, place + _MAX_LINE)
    return found + 1 or place


def open_file(services: Services, user: User, document_id: UUID, number: int) -> StoredFile:
    """Open the file that a revision was read from. Raises NotFound."""
    with library.opening(services, user, document_id) as session:
        revision = _revision(session, document_id, number)
        original = existing(revision_store.find_original(session, document_id, revision.id))
        return library.as_file(services, original)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences from the text of `against` to that of `revision`."""

    revision: Revision
    against: Revision
    pieces: tuple[Piece, ...]


def compare(
    services: Services, user: User, document_id: UUID, number: int, *, against: int | None
) -> Comparison:
    """Compare a revision with another, by default the previous one. Raises NotFound, TextsTooLong,
    TooManyLines, and Overloaded while another comparison runs."""
    with library.opening(services, user, document_id) as session:
        new = _revision(session, document_id, number)
        if against is None:
            against = existing(new.previous)
        old = _revision(session, document_id, against)
        require_comparable_length(old.character_count + new.character_count)
    # Outside of the transaction, since it may take seconds.
    pieces = services.comparisons.find(old.id, new.id, lambda: _texts(services, old, new))
    return Comparison(new, old, pieces)


def _texts(services: Services, old: Revision, new: Revision) -> tuple[str, str]:
    with services.database.begin() as session:
        return _body(session, old), _body(session, new)


def _body(session: Session, revision: Revision) -> str:
    """Return the text of a revision. Raises NotFound if it was purged meanwhile."""
    return existing(revision_store.read_body(session, revision.id))


def _revision(session: Session, document_id: UUID, number: int) -> Revision:
    return existing(revision_store.find_revision(session, document_id, number))
