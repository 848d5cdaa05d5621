"""Reading a document's file again, in another encoding or by a newer reader."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from itertools import chain
from uuid import UUID

import structlog

from portal.domain.documents import DocumentStatus
from portal.domain.people import User
from portal.errors import Conflict, InvalidInput, NotFound, UndecodableAs, existing
from portal.ingest.decoding import ENCODINGS, full_of_nul, known_encoding
from portal.ingest.formats import FORMATS
from portal.services import Services
from portal.services.documents.library import (
    as_file,
    find_editable,
    refuse_elsewhere,
    require_visible,
)
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import outdated_texts, queue

__all__ = ["ENCODINGS", "reread", "reread_outdated"]

log = structlog.get_logger(__name__)

_OUTDATED_AT_ONCE = 20


def reread(
    services: Services, user: User, document_id: UUID, *, encoding: str | None = None
) -> None:
    """Queue a document's last file to be read again; its current text is searched until then.

    `encoding` is one of ENCODINGS by any of its names, for text files; None detects it. Raises
    NotFound, Forbidden, InvalidInput, UndecodableAs when some bytes are invalid in that encoding or
    much of the result is NUL, Conflict while the document is being processed, and AlreadyElsewhere
    if its file has become another document.
    """
    name = None if encoding is None else _check_encoding(services, user, document_id, encoding)
    with services.database.begin() as session:
        document = find_editable(session, user, document_id, deleted=False)
        original = file_store.find_newest_original(session, document_id)
        if job_store.find_unfinished(session, document_id) is not None:
            raise Conflict("the document is already being processed")
        if original is None:
            raise NotFound
        refuse_elsewhere(session, user, document, original.sha256)
        job_store.add_job(
            session,
            document_id=document_id,
            file_id=original.id,
            config={"encoding": name} if name else {},
        )
        if document.current_job_id is None:
            document_store.set_status(session, document, DocumentStatus.QUEUED)


def reread_outdated(services: Services) -> int:
    """Queue documents that were read by an older reader, if no other document is waiting. Return
    their number. If the text is the same, its revision is kept, and so are its citations."""
    with services.database.begin() as session:
        if not outdated_texts.is_idle(session) or not queue.lock_requeueing(session):
            return 0
        versions = {media_type: each.reader_version for media_type, each in FORMATS.items()}
        rows = outdated_texts.lock_outdated(session, versions, limit=_OUTDATED_AT_ONCE)
        for row in rows:
            config = {"is_upgrade": True} | ({"encoding": row.encoding} if row.encoding else {})
            job_store.add_job(
                session, document_id=row.document_id, file_id=row.file_id, config=config
            )
    if rows:
        log.info("documents_read_again", count=len(rows))
    return len(rows)


def _check_encoding(services: Services, user: User, document_id: UUID, encoding: str) -> str:
    """Return the canonical name of the encoding if all of the file can be read in it."""
    name = known_encoding(encoding)
    if name is None:
        raise InvalidInput("unknown encoding; see the documentation for the list")
    with services.database.begin() as session:
        require_visible(session, user, document_id)
        original = existing(file_store.find_newest_original(session, document_id))
    file = as_file(services, original)
    if not file.media_type.has_encoding:
        raise InvalidInput("only text files and web pages have an encoding to choose")
    if not _reads_as(name, file.parts):
        raise UndecodableAs(name=file.file_name, encoding=name.upper())
    return name


def _reads_as(encoding: str, parts: Iterable[bytes]) -> bool:
    """Return whether all bytes are valid in the encoding. Applies the reader's rule about NUL;
    holds one part in memory."""
    decoder = codecs.getincrementaldecoder(encoding)()
    nul_count = character_count = 0
    try:
        for part in chain(parts, [b""]):
            text = decoder.decode(part, final=not part)
            nul_count += text.count("\0")
            character_count += len(text)
    except UnicodeError:
        return False
    return not full_of_nul(nul_count, character_count)
