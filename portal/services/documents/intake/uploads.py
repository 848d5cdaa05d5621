"""Uploads: a file is checked, stored and queued in one transaction, or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from uuid import UUID, uuid4

from portal.domain.documents import DocumentSummary, MediaType, Visibility
from portal.domain.people import User
from portal.errors import EmptyFile, EncryptedPdf, TooLarge
from portal.ingest.formats.pdf import is_encrypted_pdf, mentions_encryption
from portal.ingest.media_types import sniff_file
from portal.services import Services
from portal.services.documents import folders
from portal.services.documents.intake import disk_space, malware, quotas
from portal.services.documents.library import get_visible
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.characters.scripts import has_visible_text, is_invisible
from portal.text.titles import MAX_TITLE_CHARACTERS, check_domain, check_title

_COPY_BYTES = 1024 * 1024
_MAX_NAME_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class UploadReceipt:
    """The result of an upload; `is_duplicate` when the same bytes were already there."""

    document: DocumentSummary
    is_duplicate: bool


def clean_file_name(file_name: str) -> str:
    """Return the last part of a file name, safe to display. The result is in NFC, without control
    and direction characters, and cut to a displayable length. Joiners, which occur inside words and
    emoji, and private-use characters are kept."""
    name = unicodedata.normalize("NFC", file_name.replace("\\", "/"))
    name = PurePosixPath(name).name
    name = "".join(c for c in name if not is_invisible(c)).strip()
    if len(name) > _MAX_NAME_CHARACTERS:
        suffix = PurePosixPath(name).suffix[:20]
        name = name[: _MAX_NAME_CHARACTERS - len(suffix)] + suffix
    return name if has_visible_text(name.strip(".")) else "unnamed"


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """Where documents go: a folder, or none, and a path of folders below it, of which missing ones
    are created. A path that is nested too deeply ends at the deepest folder allowed, unless it
    `must_fit`."""

    folder_id: UUID | None = None
    path: str = ""
    must_fit: bool = False


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it arrives: a seekable stream of bytes, and its declared name."""

    stream: IO[bytes]
    file_name: str


def store_upload(
    services: Services,
    user: User,
    *,
    stream: IO[bytes],
    file_name: str,
    title: str | None = None,
    domain: str | None = None,
    visibility: Visibility | None = None,
    target: UploadTarget = UploadTarget(),
) -> UploadReceipt:
    """Store a file and queue its ingestion, unless the owner has the same bytes already. Raises
    what `check` and `store_uploads` raise, QuotaExceeded and StorageFull; then nothing is
    stored."""
    upload = Upload(stream, file_name)
    receipts = store_uploads(
        services, user, [upload], title=title, domain=domain, visibility=visibility, target=target
    )
    return receipts[0]


def store_uploads(
    services: Services,
    user: User,
    files: Sequence[Upload],
    *,
    title: str | None = None,
    domain: str | None = None,
    visibility: Visibility | None = None,
    target: UploadTarget = UploadTarget(),
) -> list[UploadReceipt]:
    """Store several files together: all of them, or none on the first error. Without `visibility`
    they are shared, or private in a private folder. Raises NotFound for a folder that the user may
    not see, Forbidden for one that the user may not add to."""
    domain = check_domain(domain)
    checked = [check(services, user, file, title) for file in files]
    # In a transaction of its own: adding a folder locks the tree, and storing takes long.
    with services.database.begin() as session:
        names = folders.path_names(target.path)
        if visibility is None:
            is_private = folders.is_private(session, target.folder_id)
            visibility = Visibility.PRIVATE if is_private else Visibility.SHARED
        folder_id = folders.find_place(
            session, user, target.folder_id, names, visibility, must_fit=target.must_fit
        )
    terms = _Terms(domain, visibility, folder_id)
    size_bytes = sum(file.size_bytes for file in checked)
    with disk_space.room_for(services, size_bytes), services.database.begin() as session:
        # In a fixed order: two requests with the same files in different orders would deadlock.
        for sha256 in sorted({file.sha256 for file in checked}):
            document_store.lock_content(session, owner_id=user.id, sha256=sha256)
        return [_store(services, session, user, file, terms) for file in checked]


class _Terms(NamedTuple):
    """The properties that the documents of one upload share."""

    domain: str | None
    visibility: Visibility
    folder_id: UUID | None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """An accepted file, with its type and its document's title."""

    stream: IO[bytes]
    file_name: str
    title: str
    media_type: MediaType
    size_bytes: int
    sha256: str


def check(services: Services, user: User, file: Upload, title: str | None = None) -> CheckedFile:
    """Check a file and return its type and title; the title defaults to the file name. Raises
    EmptyFile, UnsupportedFormat, TooLarge, EncryptedPdf, InfectedFile, ScannerUnavailable,
    InvalidInput for the title."""
    file_name = clean_file_name(file.file_name)
    media_type = _check_file(services, file.stream, file_name)
    malware.refuse_infected(services, user, file.stream, file_name=file_name)
    return CheckedFile(
        stream=file.stream,
        file_name=file_name,
        title=check_title(title if title and title.strip() else title_of(file_name)),
        media_type=media_type,
        size_bytes=_size_of(file.stream),
        sha256=_sha256(file.stream),
    )


def _store(
    services: Services, session: Session, user: User, file: CheckedFile, terms: _Terms
) -> UploadReceipt:
    present = document_store.find_duplicate(session, owner_id=user.id, sha256=file.sha256)
    if present is not None:
        return UploadReceipt(get_visible(session, user, present), is_duplicate=True)
    document_id = uuid4()
    room = quotas.room_for(
        services, session, user.id, name=file.file_name, size_bytes=file.size_bytes
    )
    with room:
        file_id = store_original(session, user, file)
        # The folder may have been deleted, or the user may have lost the right to it, while the
        # file was stored. Without the folder, all users would see a document meant for members.
        folders.find_open_for(session, user, terms.folder_id)
        session.add(
            DocumentRow(
                id=document_id,
                collection_id=document_store.portal_collection_id(session),
                owner_id=user.id,
                title=file.title,
                file_name=file.file_name,
                media_type=file.media_type.value,
                size_bytes=file.size_bytes,
                sha256=file.sha256,
                domain=terms.domain,
                visibility=terms.visibility.value,
                folder_id=terms.folder_id,
            )
        )
        session.flush()
        job_store.add_job(session, document_id=document_id, file_id=file_id)
    return UploadReceipt(get_visible(session, user, document_id), is_duplicate=False)


def store_original(session: Session, user: User, file: CheckedFile) -> UUID:
    """Store an accepted file; return its id."""
    return file_store.add_file(
        session,
        file.stream,
        file_name=file.file_name,
        media_type=file.media_type,
        uploaded_by=user.id,
    )


def digest_of(streams: Sequence[IO[bytes]], values: Sequence[str | None]) -> str:
    """Return a hash of everything in an upload request, to recognise a repeated one."""
    parts = [_sha256(stream) for stream in streams]
    return hashlib.sha256(repr((parts, list(values))).encode()).hexdigest()


def title_of(file_name: str) -> str:
    """Return the default title of a document, from its file name."""
    stem = PurePosixPath(file_name).stem.strip()
    return (stem if has_visible_text(stem) else file_name)[:MAX_TITLE_CHARACTERS]


def _check_file(services: Services, stream: IO[bytes], file_name: str) -> MediaType:
    """Return the media type of a file. Raises if it is refused; leaves the stream at its start."""
    size_bytes = _size_of(stream)
    if size_bytes == 0:
        raise EmptyFile(name=file_name)
    if size_bytes > services.settings.max_upload_bytes:
        raise TooLarge(name=file_name, limit_mb=services.settings.max_upload_mb)
    media_type = sniff_file(stream, file_name)
    if media_type is MediaType.PDF and _is_encrypted(services, stream):
        raise EncryptedPdf(name=file_name)
    stream.seek(0)
    return media_type


def _is_encrypted(services: Services, stream: IO[bytes]) -> bool:
    stream.seek(0)
    if not mentions_encryption(_blocks(stream)):
        return False
    stream.seek(0)
    directory = disk_space.temporary_dir(services.settings)
    with tempfile.NamedTemporaryFile(suffix=".pdf", dir=directory) as copy:
        shutil.copyfileobj(stream, copy, _COPY_BYTES)
        copy.flush()
        return is_encrypted_pdf(Path(copy.name))


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: stream.read(_COPY_BYTES), b"")


def _size_of(stream: IO[bytes]) -> int:
    """Return the size in bytes; leave the stream at its start."""
    size_bytes = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size_bytes


def _sha256(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    stream.seek(0)
    for block in _blocks(stream):
        digest.update(block)
    stream.seek(0)
    return digest.hexdigest()
