"""Importing files and folders from disk, as `portal import` does."""

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
from portal.services.documents import jobs
from portal.services.documents.uploads import store_upload
from portal.store.documents import importing as import_store
from portal.store.documents.importing import Present, Progress

# So many files are looked up at once, among what is there already.
_FILES_AT_ONCE = 32
# So many documents are asked about at once; the earlier ones are read first.
MAX_FOLLOWED = 1000


class Outcome(Enum):
    """What came of a file."""

    STORED = auto()
    PRESENT = auto()
    """The same bytes of the same owner are there, ready or on their way."""
    AGAIN = auto()
    """They are there and failed, and are tried once more."""
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What came of one file: a document, or the reason why not. `is_ready`: nothing of it is to be
    waited for; `seen_by`: who sees it, where that is not as wished."""

    path: Path
    outcome: Outcome
    document_id: UUID | None = None
    is_ready: bool = False
    seen_by: Visibility | None = None
    error: PortalError | None = None


@dataclass(frozen=True, slots=True)
class _Terms:
    """Whose the documents become, and who sees them."""

    user: User
    domain: str | None
    visibility: Visibility


def import_files(
    services: Services,
    user: User,
    files: Iterable[Path],
    *,
    domain: str | None,
    visibility: Visibility,
) -> Iterator[ImportedFile]:
    """Store and queue each file in a transaction of its own, unless it is there; one that cannot be
    taken does not stop the others.

    Raises DatabaseUnavailable and StorageFull, which all the others would meet as well.
    """
    terms = _Terms(user, domain, visibility)
    remaining = iter(files)
    while paths := list(islice(remaining, _FILES_AT_ONCE)):
        hashes = {path: _sha256(path, services.settings.max_upload_bytes) for path in paths}
        with services.database.read() as session:
            known = import_store.find_contents(
                session,
                owner_id=user.id,
                hashes={one for one in hashes.values() if one},
                visibility=visibility,
            )
        for path, sha256 in hashes.items():
            present = known.get(sha256) if sha256 else None
            yield (_present(services, terms, path, present) if present else None) or _store(
                services, terms, path
            )


def _sha256(path: Path, max_bytes: int) -> str | None:
    """None for what cannot be read or is too large to be taken: whoever stores it says so."""
    try:
        if not path.is_file() or path.stat().st_size > max_bytes:
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _present(
    services: Services, terms: _Terms, path: Path, present: Present
) -> ImportedFile | None:
    """What becomes of a file whose content is there; None when it is stored like any other."""
    if present.status is not DocumentStatus.FAILED:
        return _known(terms, path, present)
    if present.visibility is not terms.visibility:
        return None  # Tried again it would be shown to whom it is not meant for, or kept from them.
    try:
        jobs.retry(services, terms.user, present.document_id)
    except (Conflict, NotFound):
        return None  # Somebody was quicker, or threw it away, or its original is gone.
    return ImportedFile(path, Outcome.AGAIN, present.document_id)


def _known(terms: _Terms, path: Path, present: Present) -> ImportedFile:
    return ImportedFile(
        path,
        Outcome.PRESENT,
        present.document_id,
        is_ready=present.status is DocumentStatus.READY,
        seen_by=None if present.visibility is terms.visibility else present.visibility,
    )


def _store(services: Services, terms: _Terms, path: Path) -> ImportedFile:
    try:
        _expect_no_device(path)
        with path.open("rb") as stream:
            receipt = store_upload(
                services,
                terms.user,
                stream=stream,
                file_name=shown_name(path.name),
                domain=terms.domain,
                visibility=terms.visibility,
            )
    except (DatabaseUnavailable, StorageFull):
        raise
    except PortalError as error:
        return ImportedFile(path, Outcome.REFUSED, error=error)
    except OSError as error:
        return unreadable(path, error)
    document = receipt.document
    if receipt.is_duplicate:
        return _known(terms, path, Present(document.id, document.status, document.visibility))
    return ImportedFile(path, Outcome.STORED, document.id)


def _expect_no_device(path: Path) -> None:
    """Raises OSError for what would be waited for without end, such as a pipe."""
    if path.exists() and not path.is_file():
        raise OSError("it is neither a file nor a folder")


def unreadable(path: Path, error: OSError) -> ImportedFile:
    """A file or folder that the disk does not give."""
    reason = f"{shown_name(path.name)}: {error.strerror or error}"
    return ImportedFile(path, Outcome.REFUSED, error=UnreadableFile(reason=verbatim(reason)))


def shown_name(name: str) -> str:
    """A name from disk with U+FFFD for the bytes of it that are not UTF-8: so it can be stored and
    printed."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


def follow(services: Services, user: User, document_ids: Sequence[UUID]) -> dict[UUID, Progress]:
    """How far each of the first `MAX_FOLLOWED` of these documents of a person is, in one
    statement; without those that have been thrown away."""
    with services.database.read() as session:
        found = import_store.read_progress(
            session, owner_id=user.id, document_ids=document_ids[:MAX_FOLLOWED]
        )
    return {one.document_id: one for one in found}


def failure_words(failure: Failure) -> str:
    """Why a document failed, in English, as the command line speaks."""
    template = MESSAGES.get(failure.code, PortalError.message)
    return template % failure.params if failure.params else template
