"""Indexing: from a stored file to searchable chunks, in steps that can be repeated.

The text becomes an immutable revision, its chunks are embedded and stored in batches, and one
update makes them searchable. An interrupted job resumes where it stopped; none of it is searchable
before the last step.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from portal.domain.documents import Chunk, ExtractedText, Heading, Page
from portal.domain.documents.jobs import JobStage, JobStatus
from portal.domain.documents.notifications import NotificationKind
from portal.domain.documents.structure import Block
from portal.errors import DatabaseUnavailable, EmptyFile, PortalError, StorageFull, is_disk_full
from portal.ingest.chunking import split
from portal.ingest.extraction import extract
from portal.ingest.formats import FORMATS
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.observability import metrics, tracing
from portal.services import Services
from portal.services.documents import shared_words
from portal.services.documents.ingestion import attempts, chunk_storage
from portal.services.documents.ingestion.adopting import adopt
from portal.services.documents.ingestion.attempts import Attempt, JobGone
from portal.services.documents.ingestion.chunk_storage import ChunkOwner, ChunkToStore
from portal.services.documents.intake import disk_space
from portal.services.documents.versions import revision_changes
from portal.services.models import catalog
from portal.services.models.catalog import ModelVectors
from portal.store.documents import notifications
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import outdated_texts
from portal.store.documents.texts import chunks as chunk_store
from portal.store.documents.texts import revisions
from portal.store.models import DocumentRevisionRow
from portal.store.session import Session
from portal.text.characters.scripts import has_visible_text

log = structlog.get_logger(__name__)

_BATCH_CHUNKS = 16
_NOTE_EVERY_S = 1.0


class _Interrupted(Exception):
    """The job stopped between two batches or two pages; what it stored is kept."""

    def __init__(self, *, while_reading: bool = False) -> None:
        self.while_reading = while_reading


class _Reading:
    """The reading of a file: records its progress, and interrupts it on request. `should_stop`
    moves the file to the slow queue, `should_quit` is for a shutdown."""

    def __init__(
        self,
        services: Services,
        attempt: Attempt,
        should_stop: Callable[[], bool],
        should_quit: Callable[[], bool],
    ) -> None:
        self._services, self._attempt = services, attempt
        self._should_stop, self._should_quit = should_stop, should_quit
        self._due = time.monotonic()

    def note_page(self, done: int, total: int) -> None:
        """Record progress about once a second. Raises _Interrupted, JobGone."""
        self._check_interruption()
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _NOTE_EVERY_S
            stage = JobStage.READING
            attempts.note(self._services, self._attempt, stage, done=done, total=total)

    def check(self) -> None:
        """Raise _Interrupted, or JobGone when the text is no longer wanted."""
        self._check_interruption()
        # A short database outage is no reason to read the file again.
        with suppress(DatabaseUnavailable):
            attempts.require_wanted(self._services, self._attempt)

    def _check_interruption(self) -> None:
        if self._should_quit():
            raise _Interrupted
        if self._should_stop():
            raise _Interrupted(while_reading=True)


def index_document(
    services: Services,
    job_id: UUID,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    should_stop_reading: Callable[[], bool] = lambda: False,
    should_quit: Callable[[], bool] = lambda: False,
) -> None:
    """Run one ingestion job until its document is ready or failed, or it is queued again.

    It is queued again while the disk is too full to begin, after a temporary error, when
    `should_stop` is true between two batches of chunks, when `should_stop_reading` is true during
    reading (then in the slow queue), and when `should_quit` is true. When a document is cancelled
    or deleted its reader is killed within a second. Raises DatabaseUnavailable when nothing can be
    recorded; the job is then recovered.
    """
    attempt = attempts.begin(services, job_id)
    if attempt is None:
        return
    try:
        disk_space.require_disk_space(services)
    except StorageFull as error:
        attempts.postpone(services, attempt, error)
        return
    try:
        reading = _Reading(services, attempt, should_stop_reading, should_quit)
        _index(services, attempt, should_stop, reading)
    except JobGone:
        return
    except _Interrupted as end:
        attempts.hand_back(services, job_id, number=attempt.number, is_slow=end.while_reading)
    except PortalError as error:
        attempts.fail(services, job_id, error, number=attempt.number)
    except Exception as error:  # No unexpected error may leave a document "processing" forever.
        if is_disk_full(error):
            attempts.fail(services, job_id, StorageFull(), number=attempt.number)
            return
        log.exception("job_failed", job_id=str(job_id), error_type=type(error).__name__)
        metrics.count_error(PortalError.code, "job")
        attempts.fail(services, job_id, PortalError(), number=attempt.number)


def _index(
    services: Services, attempt: Attempt, should_stop: Callable[[], bool], reading: _Reading
) -> None:
    with tracing.span("ingest.extract", media_type=attempt.media_type):
        extracted = _extract(services, attempt, reading)
    with tracing.span("ingest.split"):
        chunks = split(extracted, target_tokens=attempt.chunk_tokens)
    with tracing.span("ingest.store", chunks=len(chunks)):
        _store_chunks(services, attempt, chunks, should_stop)
    with tracing.span("ingest.publish"):
        if attempt.has_text:
            revision_changes.note(services, attempt)
        _publish(services, attempt)


def _extract(services: Services, attempt: Attempt, reading: _Reading) -> ExtractedText:
    """Return the text of the job's file, from its revision if an earlier attempt stored one."""
    if attempt.revision_id is not None:
        with services.database.begin() as session:
            row = chunk_store.get_revision(session, attempt.revision_id)
            if row is not None:
                return _from_revision(row)
    settings = services.settings.ingest
    limits = ExtractionLimits(
        max_pages=settings.max_pages,
        max_characters=settings.max_characters,
        timeout_s=settings.extraction_timeout_s,
        memory_mb=settings.extraction_memory_mb,
        ocr_timeout_s=settings.ocr_timeout_s,
    )
    room = disk_space.temporary_dir(services.settings)
    with tempfile.TemporaryDirectory(prefix="portal-", dir=room) as directory:
        path = Path(directory) / "original"
        _copy_file(services, attempt, path)
        file = FileToRead(
            path, attempt.file_name, limits, attempt.encoding, reading.note_page, reading.check
        )
        extracted = extract(file, attempt.media_type)
    if not has_visible_text(extracted.text):
        raise EmptyFile(name=attempt.file_name)
    with services.database.begin() as session:
        job, _ = attempts.lock_job(session, attempt)
        job.deaths = 0
        job.revision_id = _revision(session, attempt, extracted)
    return extracted


def _revision(session: Session, attempt: Attempt, extracted: ExtractedText) -> UUID:
    """Return a new revision, or the current one if a newer reader read the same text."""
    digest = hashlib.sha256(extracted.text.encode()).hexdigest()
    version = FORMATS[attempt.media_type].reader_version
    if attempt.is_upgrade:
        current = revisions.find_current(session, attempt.document_id)
        row = chunk_store.get_revision(session, current) if current else None
        if row is not None and row.sha256 == digest:
            outdated_texts.renew(session, row.id, extracted, reader_version=version)
            return row.id
    return chunk_store.add_revision(
        session,
        document_id=attempt.document_id,
        file_id=attempt.file_id,
        extracted=extracted,
        sha256=digest,
        reader_version=version,
    )


def _from_revision(row: DocumentRevisionRow) -> ExtractedText:
    return ExtractedText(
        text=row.body,
        extractor=row.extractor,
        pages=tuple(Page(*page) for page in row.pages),
        headings=tuple(Heading(*heading) for heading in row.headings),
        blocks=tuple(map(Block.from_json, row.blocks)),
        encoding=row.encoding,
        warnings=tuple(row.warnings),
    )


def _copy_file(services: Services, attempt: Attempt, path: Path) -> None:
    with services.database.begin() as session, path.open("wb") as copy:
        if attempt.file_id is None:
            raise JobGone
        for part in file_store.read_parts(session, attempt.file_id):
            copy.write(part)


def _store_chunks(
    services: Services, attempt: Attempt, chunks: Sequence[Chunk], should_stop: Callable[[], bool]
) -> None:
    """Embed and store chunks in batches, each in one transaction. The next batch is embedded while
    one is stored."""
    stored: set[int] = set()
    if attempt.revision_id is not None:  # Without a revision, earlier attempts stored no chunks.
        with services.database.read() as session:
            stored = chunk_store.stored_indexes(session, attempt.job_id)
    todo = [chunk for chunk in chunks if chunk.index not in stored]
    done, total = len(chunks) - len(todo), len(chunks)
    if len(todo) > _BATCH_CHUNKS:
        attempts.note(services, attempt, JobStage.EMBEDDING, done=done, total=total)
    batches = [todo[at : at + _BATCH_CHUNKS] for at in range(0, len(todo), _BATCH_CHUNKS)]
    with ThreadPoolExecutor(1, "embedding") as thread:
        run = copy_context().run
        coming = [thread.submit(run, _embed, services, attempt, batch) for batch in batches]
        try:
            for batch, vectors in zip(batches, coming, strict=True):
                if should_stop():
                    raise _Interrupted
                done += len(batch)
                _store_batch(services, attempt, batch, vectors.result(), done=done, total=total)
        finally:
            thread.shutdown(cancel_futures=True)


def _embed(services: Services, attempt: Attempt, batch: Sequence[Chunk]) -> ModelVectors:
    texts = [chunk_storage.embedded_text(chunk) for chunk in batch]
    return catalog.embed_for_all(services, texts, document_id=attempt.document_id)


def _store_batch(
    services: Services,
    attempt: Attempt,
    batch: Sequence[Chunk],
    vectors: ModelVectors,
    *,
    done: int,
    total: int,
) -> None:
    """Store one batch of chunks with their vectors; the file name and page become metadata."""
    new = [ChunkToStore(chunk, _metadata(chunk, attempt.file_name)) for chunk in batch]
    owner = ChunkOwner(attempt.job_id, attempt.document_id, attempt.collection_id, attempt.title)

    def prepare(session: Session) -> tuple[ChunkOwner, Sequence[ChunkToStore]]:
        job, _ = attempts.lock_job(session, attempt)
        job.deaths, job.stage = 0, JobStage.EMBEDDING.value
        job.done_count, job.total_count = done, total
        return owner, new

    texts = [chunk_storage.embedded_text(chunk) for chunk in batch]
    chunk_storage.store(services, texts, prepare, document_id=attempt.document_id, vectors=vectors)


def _metadata(chunk: Chunk, file_name: str) -> dict[str, Any]:
    known: dict[str, Any] = {"source_file": file_name, "page_number": chunk.page}
    return known if chunk.page_label is None else known | {"page_label": chunk.page_label}


def _publish(services: Services, attempt: Attempt) -> None:
    """Make the whole ingestion searchable at once, in place of the earlier text. The document takes
    the file's name. A deleted document stays deleted."""
    with shared_words.sharing(services) as session:
        job, document = attempts.lock_job(session, attempt)
        adopt(session, document, attempt.job_id, analysed_as=attempt.title)
        document_store.publish(session, document, attempt.job_id)
        job_store.finish(session, job, JobStatus.READY)
        if not attempt.is_upgrade:
            notifications.add_ending(session, attempt.job_id, NotificationKind.READY)
        elif job.revision_id is not None:
            outdated_texts.take_over(session, job.revision_id, attempt.job_id)
