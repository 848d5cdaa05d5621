"""Indexing: from a stored file to searchable passages, in steps that can be repeated.

The text becomes an immutable revision, its passages are embedded and stored in batches, and one
update makes them searchable. Whatever is interrupted goes on where it stopped; until the last
step nothing of it is in any search.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from portal.domain.documents import (
    DocumentStatus,
    ExtractedText,
    Failure,
    Heading,
    MediaType,
    Page,
    Passage,
)
from portal.errors import EmptyFile, PortalError, Unavailable
from portal.ingest.chunking import split
from portal.ingest.extraction import ExtractionLimits, extract
from portal.services import Services, passages
from portal.services.passages import NewPassage, Place
from portal.store import chunks as chunk_store
from portal.store import documents as document_store
from portal.store import files as file_store
from portal.store import jobs as job_store
from portal.store.models import DocumentRevisionRow
from portal.store.session import Session
from portal.text.scripts import has_visible_text

MAX_ATTEMPTS = 3
# A file that kills its worker each time would otherwise come back for ever.
MAX_STARTS = 20
_GIVEN_UP = Failure(PortalError.code)
_BATCH_PASSAGES = 16


@dataclass(frozen=True, slots=True)
class _Work:
    job_id: UUID
    document_id: UUID
    collection_id: UUID
    file_id: UUID | None
    revision_id: UUID | None
    title: str
    file_name: str
    media_type: MediaType


class Interrupted(Exception):
    """The job stopped between two batches; what it stored is kept."""


class JobGone(Exception):
    """The job has nothing left to do."""


def index_document(
    services: Services, job_id: UUID, *, should_stop: Callable[[], bool] = lambda: False
) -> None:
    """Do one ingestion job to its end: the document is ready, or failed with a reason.

    Raises Unavailable (try again later) while attempts remain, Interrupted when `should_stop`
    says so; any other failure is recorded.
    """
    try:
        work = _start(services, job_id)
        if work is None:
            return
        extracted = _extracted(services, work)
        found = split(extracted, target_tokens=services.settings.ingest.chunk_tokens)
        _store_passages(services, work, found, should_stop)
        _publish(services, work)
    except JobGone:
        return
    except Unavailable as error:
        if _attempts(services, job_id) < MAX_ATTEMPTS:
            raise
        record_failure(services, job_id, error)
    except PortalError as error:
        record_failure(services, job_id, error)


def _start(services: Services, job_id: UUID) -> _Work | None:
    """Take the job up; None when it is done or its document is gone."""
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        if job is None or job.status not in {"queued", "processing"}:
            return None
        document = document_store.get_document(session, job.document_id)
        if job.attempts >= MAX_STARTS:
            job_store.finish(session, job_id, status="failed", failure=_GIVEN_UP)
            document_store.set_status(session, job.document_id, DocumentStatus.FAILED, _GIVEN_UP)
            return None
        if document is None or document.purged_at is not None:
            job_store.finish(session, job_id, status="cancelled")
            return None
        job_store.start(session, job_id)
        if document.current_job_id is None:
            # A document that already has searchable text stays ready while new text is read.
            document_store.set_status(session, document.id, DocumentStatus.PROCESSING)
        return _Work(
            job_id=job_id,
            document_id=document.id,
            collection_id=document.collection_id,
            file_id=job.file_id,
            revision_id=job.revision_id,
            title=document.title,
            file_name=document.file_name,
            media_type=MediaType(document.media_type),
        )


def _attempts(services: Services, job_id: UUID) -> int:
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        return job.attempts if job else MAX_ATTEMPTS


def _extracted(services: Services, work: _Work) -> ExtractedText:
    """The text of the job's file, from its revision when an earlier attempt got that far."""
    if work.revision_id is not None:
        with services.database.begin() as session:
            row = chunk_store.get_revision(session, work.revision_id)
            if row is not None:
                return _from_revision(row)
    _note(services, work, stage="reading", done=0, total=0)
    settings = services.settings.ingest
    limits = ExtractionLimits(
        max_pages=settings.max_pages,
        max_characters=settings.max_characters,
        timeout_s=settings.extraction_timeout_s,
        memory_mb=settings.extraction_memory_mb,
    )
    with tempfile.TemporaryDirectory(prefix="portal-") as directory:
        path = Path(directory) / "original"
        _copy_file(services, work, path)
        extracted = extract(
            path, file_name=work.file_name, media_type=work.media_type, limits=limits
        )
    if not has_visible_text(extracted.text):
        raise EmptyFile(name=work.file_name)
    digest = hashlib.sha256(extracted.text.encode()).hexdigest()
    with services.database.begin() as session:
        job = job_store.lock_job(session, work.job_id)
        if job is None:
            raise JobGone
        job.revision_id = chunk_store.add_revision(
            session,
            document_id=work.document_id,
            file_id=work.file_id,
            extracted=extracted,
            sha256=digest,
        )
    return extracted


def _from_revision(row: DocumentRevisionRow) -> ExtractedText:
    return ExtractedText(
        text=row.body,
        extractor=row.extractor,
        pages=tuple(Page(*page) for page in row.pages),
        headings=tuple(Heading(*heading) for heading in row.headings),
        encoding=row.encoding,
        warnings=tuple(row.warnings),
    )


def _copy_file(services: Services, work: _Work, path: Path) -> None:
    with services.database.begin() as session, path.open("wb") as copy:
        if work.file_id is None:
            raise JobGone
        for part in file_store.read_parts(session, work.file_id):
            copy.write(part)


def _store_passages(
    services: Services,
    work: _Work,
    found: Sequence[Passage],
    should_stop: Callable[[], bool],
) -> None:
    """Embed and store passages in batches, each batch whole or not at all."""
    with services.database.begin() as session:
        stored = chunk_store.stored_indexes(session, work.job_id)
    todo = [passage for passage in found if passage.index not in stored]
    done, total = len(found) - len(todo), len(found)
    for start in range(0, len(todo), _BATCH_PASSAGES):
        if should_stop():
            raise Interrupted
        batch = todo[start : start + _BATCH_PASSAGES]
        _store_batch(services, work, batch)
        done += len(batch)
        _note(services, work, stage="embedding", done=done, total=total)


def _store_batch(services: Services, work: _Work, batch: Sequence[Passage]) -> None:
    """Store passages with their vectors. What a pipeline knows of each is its metadata."""
    new = [
        NewPassage(passage, {"source_file": work.file_name, "page_number": passage.page})
        for passage in batch
    ]
    place = Place(work.job_id, work.document_id, work.collection_id, work.title)

    def prepare(session: Session) -> tuple[Place, Sequence[NewPassage]]:
        _require_job(job_store.lock_job(session, work.job_id) is not None)
        # In the trash nobody waits for it; restored, housekeeping queues it again.
        _require_job(not document_store.is_deleted(session, work.document_id))
        return place, new

    passages.store(services, [passage.content for passage in batch], prepare)


def _require_job(exists: bool) -> None:
    if not exists:
        raise JobGone


def _publish(services: Services, work: _Work) -> None:
    """Make the whole ingestion searchable at once. A deleted document stays deleted."""
    with services.database.begin() as session:
        _require_job(job_store.lock_job(session, work.job_id) is not None)
        document_store.publish(session, document_id=work.document_id, job_id=work.job_id)
        job_store.finish(session, work.job_id, status="ready")


def hand_back(services: Services, job_id: UUID) -> None:
    """Queue an interrupted job again, for whichever worker comes next."""
    with services.database.begin() as session:
        job_store.enqueue(session, job_id)


def record_failure(services: Services, job_id: UUID, error: PortalError) -> None:
    """Mark job and document failed, with a reason that a person understands."""
    failure = Failure(error.code, error.params)
    with services.database.begin() as session:
        job = job_store.lock_job(session, job_id)
        if job is None:
            return
        job_store.finish(session, job_id, status="failed", failure=failure)
        document_store.set_status(session, job.document_id, DocumentStatus.FAILED, failure)


def _note(services: Services, work: _Work, *, stage: str, done: int, total: int) -> None:
    with services.database.begin() as session:
        job_store.note_progress(session, work.job_id, stage=stage, done=done, total=total)
