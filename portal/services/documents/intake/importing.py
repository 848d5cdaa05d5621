"""Import of files and folders from disk, as `portal import` does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from pathlib import Path
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure, Visibility
from portal.domain.people import User
from portal.errors import (
    MESSAGES,
    Conflict,
    DatabaseUnavailable,
    NotFound,
    PortalError,
    StorageFull,
    UnreadableFile,
    verbatim,
)
from portal.services import Services
from portal.services.documents.ingestion import jobs
from portal.services.documents.intake.uploads import UploadTarget, store_upload
from portal.store.documents.ingestion import importing as import_store
from portal.store.documents.ingestion.importing import Present, Progress

# Files looked up at once among the documents that exist already.
_FILES_AT_ONCE = 32
# Documents polled at once; the earlier ones are read first.
MAX_FOLLOWED = 1000


class Outcome(Enum):
    """The outcome of importing a file."""

    STORED = auto()
    PRESENT = auto()
    """The owner already has the same bytes, ready or in progress."""
    AGAIN = auto()
    """The owner has the same bytes, but reading them failed: their document is retried."""
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """The result for one file: a document, or the reason why there is none. `is_ready` if there is
    nothing to wait for; `seen_by` is the visibility if it differs from the requested one."""

    path: Path
    outcome: Outcome
    document_id: UUID | None = None
    is_ready: bool = False
    seen_by: Visibility | None = None
    error: PortalError | None = None


@dataclass(frozen=True, slots=True)
class _Terms:
    """The owner, the visibility and the place of imported documents."""

    user: User
    domain: str | None
    visibility: Visibility
    roots: Sequence[Path]
    into: str

    def target_of(self, path: Path) -> UploadTarget:
        """Return the place of a file: the folder tree below a root is kept."""
        names = [name for name in self.into.split("/") if name]
        for root in self.roots:
            if path != root and path.is_relative_to(root):
                names += [root.resolve().name, *path.relative_to(root).parent.parts]
                break
        return UploadTarget(path="/".join(map(display_name, names)))


def import_files(
    services: Services,
    user: User,
    files: Iterable[Path],
    *,
    domain: str | None,
    visibility: Visibility,
    roots: Sequence[Path] = (),
    into: str = "",
) -> Iterator[ImportedFile]:
    """Store and queue each file in its own transaction, unless it already exists.

    Folders on disk below `roots` become folders of the portal, below the path `into`.

    A refused file does not stop the others. Raises DatabaseUnavailable and StorageFull, which would
    affect all other files as well.
    """
    terms = _Terms(user, domain, visibility, roots, into)
    remaining = iter(files)
    while paths := list(islice(remaining, _FILES_AT_ONCE)):
        hashes = {path: _sha256(path, services.settings.max_upload_bytes) for path in paths}
        with services.database.read() as session:
            known = import_store.find_contents(
                session,
                owner_id=user.id,
                hashes={digest for digest in hashes.values() if digest},
                visibility=visibility,
            )
        for path, sha256 in hashes.items():
            present = known.get(sha256) if sha256 else None
            yield (_retry_or_report(services, terms, path, present) if present else None) or _store(
                services, terms, path
            )


def _sha256(path: Path, max_bytes: int) -> str | None:
    """Return the hash of a file; None if it is unreadable or too large."""
    try:
        if not path.is_file() or path.stat().st_size > max_bytes:
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _retry_or_report(
    services: Services, terms: _Terms, path: Path, present: Present
) -> ImportedFile | None:
    """Return the result for a file whose content exists; None to store it like any other."""
    if present.status is not DocumentStatus.FAILED:
        return _report_known(terms, path, present)
    if present.visibility is not terms.visibility:
        return None  # A retry would show the document to other users than requested.
    try:
        jobs.retry(services, terms.user, present.document_id)
    except (Conflict, NotFound):
        return None  # It was retried or deleted meanwhile, or its original is gone.
    return ImportedFile(path, Outcome.AGAIN, present.document_id)


def _report_known(terms: _Terms, path: Path, present: Present) -> ImportedFile:
    return ImportedFile(
        path,
        Outcome.PRESENT,
        present.document_id,
        is_ready=present.status is DocumentStatus.READY,
        seen_by=None if present.visibility is terms.visibility else present.visibility,
    )


def _store(services: Services, terms: _Terms, path: Path) -> ImportedFile:
    try:
        if path.exists() and not path.is_file():
            # Special files, such as a pipe, could block forever.
            raise OSError("it is neither a file nor a folder")
        with path.open("rb") as stream:
            receipt = store_upload(
                services,
                terms.user,
                stream=stream,
                file_name=display_name(path.name),
                domain=terms.domain,
                visibility=terms.visibility,
                target=terms.target_of(path),
            )
    except (DatabaseUnavailable, StorageFull):
        raise
    except PortalError as error:
        return ImportedFile(path, Outcome.REFUSED, error=error)
    except OSError as error:
        return unreadable(path, error)
    document = receipt.document
    if receipt.is_duplicate:
        return _report_known(
            terms, path, Present(document.id, document.status, document.visibility)
        )
    return ImportedFile(path, Outcome.STORED, document.id)


def unreadable(path: Path, error: OSError) -> ImportedFile:
    """Return the result for a file or folder that cannot be read from disk."""
    reason = f"{display_name(path.name)}: {error.strerror or error}"
    return ImportedFile(path, Outcome.REFUSED, error=UnreadableFile(verbatim(reason)))


def display_name(name: str) -> str:
    """Return a storable file name, with U+FFFD for bytes that are not UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def follow(services: Services, user: User, document_ids: Sequence[UUID]) -> dict[UUID, Progress]:
    """Return the progress of the first `MAX_FOLLOWED` of a user's documents. Runs one statement;
    deleted documents are left out."""
    with services.database.read() as session:
        found = import_store.read_progress(
            session, owner_id=user.id, document_ids=document_ids[:MAX_FOLLOWED]
        )
    return {summary.document_id: summary for summary in found}


def failure_words(failure: Failure) -> str:
    """Return the reason why a document failed, in English, for the command line."""
    template = MESSAGES.get(failure.code, PortalError.message)
    return template % failure.params if failure.params else template
