"""Importing files and folders from disk, as `portal import` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure, Visibility
from portal.domain.people import Person
from portal.errors import MESSAGES, NotFound, PortalError, UnreadableFile
from portal.services import Services, library
from portal.services.uploads import store_upload

# In a folder, only what the portal reads is taken; a file that is named outright is always tried.
_KNOWN_SUFFIXES = {
    *(".pdf", ".txt", ".text", ".md", ".markdown", ".mdown", ".mkd"),
    *(".docx", ".docm", ".html", ".htm", ".xhtml"),
}


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What came of one file: a document, or the reason why not."""

    path: Path
    document_id: UUID | None
    is_duplicate: bool = False
    error: PortalError | None = None


def find_files(paths: Iterable[Path]) -> list[Path]:
    """Files to import, in a stable order; hidden files and folders are left alone."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_file():
            found.setdefault(path)
            continue
        for entry in sorted(path.rglob("*")):
            if _is_wanted(entry, path):
                found.setdefault(entry)
    return list(found)


def _is_wanted(entry: Path, folder: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in entry.relative_to(folder).parts)
    # A link in a folder may lead anywhere; one that is named outright was meant.
    if is_hidden or entry.is_symlink():
        return False
    return entry.suffix.lower() in _KNOWN_SUFFIXES and entry.is_file()


def import_files(
    services: Services,
    person: Person,
    files: Iterable[Path],
    *,
    domain: str | None,
    visibility: Visibility,
) -> Iterator[ImportedFile]:
    """Store and queue each file; one that cannot be taken does not stop the others."""
    for path in files:
        try:
            with path.open("rb") as stream:
                receipt = store_upload(
                    services,
                    person,
                    stream=stream,
                    file_name=path.name,
                    domain=domain,
                    visibility=visibility,
                )
        except PortalError as error:
            yield ImportedFile(path, None, error=error)
        except OSError as error:
            reason = f"{path.name}: {error.strerror or error}"
            yield ImportedFile(path, None, error=UnreadableFile(reason=reason))
        else:
            yield ImportedFile(path, receipt.document.id, receipt.is_duplicate)


def unfinished(services: Services, person: Person, document_ids: Iterable[UUID]) -> set[UUID]:
    """Which of these are still queued or being read."""
    waiting = {DocumentStatus.QUEUED, DocumentStatus.PROCESSING}
    left = set()
    for document_id in document_ids:
        try:
            summary = library.get_summary(services, person, document_id)
        except NotFound:
            continue
        if summary.status in waiting:
            left.add(document_id)
    return left


def failure_words(failure: Failure) -> str:
    """Why a document failed, in English, as the command line speaks."""
    template = MESSAGES.get(failure.code, PortalError.message)
    return template % failure.params if failure.params else template
