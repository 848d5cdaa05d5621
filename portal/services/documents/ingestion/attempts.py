"""Attempts at a job: how they begin and end, and when they are retried.

::

    queued ── begin ──► processing ── publish ──► ready
      ▲                    │ │ │
      ├── hand_back ───────┤ │ └─ a permanent error, the third temporary one,
      ├── postpone ────────┘ │    or a file that kills its reader ──► failed
      └── fail, then retry ──┘

A document that has searchable text from an earlier job stays ready throughout; only the job
records the outcome.

Every write of an attempt checks its number, so that a worker that was presumed dead cannot change a
job that another worker has taken over.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure, MediaType
from portal.domain.documents.jobs import UNFINISHED, JobStage, JobStatus
from portal.domain.documents.notifications import NotificationKind
from portal.errors import KilledWorker, PortalError, StorageFull, Unavailable
from portal.ingest.formats import FORMATS
from portal.services import Services
from portal.store.documents import notifications
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import outdated_texts, queue
from portal.store.documents.texts import revisions
from portal.store.models import DocumentRow, JobRow
from portal.store.session import Session

MAX_ATTEMPTS = 3
BACKOFF_S = (10.0, 40.0)
"""Delays before the second and the third attempt."""
_POSTPONED_S = 60.0
_MAY_PASS = (Unavailable, StorageFull)
# After this many deaths in a row the next attempt runs in its own process.
_DEATHS_OF_A_SUSPECT = MAX_ATTEMPTS - 1


class JobGone(Exception):
    """The attempt has nothing left to do: its job ended or belongs to another attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A running attempt at a job; `number` counts from 1."""

    job_id: UUID
    number: int
    document_id: UUID
    collection_id: UUID
    file_id: UUID | None
    revision_id: UUID | None
    title: str
    file_name: str
    media_type: MediaType
    encoding: str | None
    """The encoding the user chose; None to detect it."""
    chunk_tokens: int
    """The chunk limit that the job began with: with two, chunks would overlap or leave gaps."""
    has_text: bool
    """True if an earlier text of the document is searchable meanwhile."""
    is_upgrade: bool = False
    """True if the file is only read again by a newer reader version; no notification is sent."""


def begin(services: Services, job_id: UUID) -> Attempt | None:
    """Start a job. Return None when it is done or its document is gone or in the trash;
    housekeeping queues it again if the document is restored."""
    with services.database.begin() as session:
        locked = job_store.lock_job(session, job_id)
        if locked is None:
            return None
        job, document = locked
        if job.status not in UNFINISHED or document.deleted_at is not None:
            return None
        chunk_tokens = int(job.config.get("chunk_tokens", services.settings.ingest.chunk_tokens))
        job.config = {**job.config, "chunk_tokens": chunk_tokens}
        if job.revision_id is None:
            job.stage, job.done_count, job.total_count = JobStage.READING.value, 0, 0
        number = job_store.start(session, job)
        original = file_store.find_original_of_job(session, job_id)
        file_name = original.file_name if original else document.file_name
        media_type = original.media_type if original else MediaType(document.media_type)
        if document.current_job_id is None:
            # A document that already has searchable text stays ready while new text is read.
            document_store.set_status(session, document, DocumentStatus.PROCESSING)
        return Attempt(
            job_id=job_id,
            number=number,
            document_id=document.id,
            collection_id=document.collection_id,
            file_id=job.file_id,
            revision_id=job.revision_id,
            title=document.title,
            file_name=file_name,
            media_type=media_type,
            encoding=job.config.get("encoding"),
            chunk_tokens=chunk_tokens,
            has_text=document.current_job_id is not None,
            is_upgrade=bool(job.config.get("is_upgrade")),
        )


def lock_job(session: Session, attempt: Attempt) -> tuple[JobRow, DocumentRow]:
    """Return the job of an attempt and its document, both locked. Raises JobGone when another
    attempt owns the job or the document is in the trash."""
    locked = job_store.lock_attempt(session, attempt.job_id, attempt.number)
    if locked is None or locked[1].deleted_at is not None:
        raise JobGone
    return locked


def note(
    services: Services, attempt: Attempt, stage: JobStage, *, done: int = 0, total: int = 0
) -> None:
    """Record the progress of an attempt. Raises JobGone as `lock_job` does."""
    with services.database.begin() as session:
        is_noted = job_store.note_progress(
            session, attempt.job_id, attempt.number, stage=stage, done=done, total=total
        )
        if not is_noted or document_store.is_deleted(session, attempt.document_id):
            raise JobGone


def require_wanted(services: Services, attempt: Attempt) -> None:
    """Raise JobGone as `lock_job` does, without waiting for locks."""
    with services.database.read() as session:
        is_current = job_store.is_attempt(session, attempt.job_id, attempt.number)
        if not is_current or document_store.is_deleted(session, attempt.document_id):
            raise JobGone


def is_suspect(services: Services, job_id: UUID) -> bool:
    """Return whether a job's last attempts all killed their worker without making progress."""
    with services.database.read() as session:
        job = job_store.find_job(session, job_id)
        if job is None:
            return False
        is_cut_off = job.status == JobStatus.PROCESSING
        return job.deaths + is_cut_off >= _DEATHS_OF_A_SUSPECT


def has_others_waiting(services: Services, job_id: UUID) -> bool:
    """Return whether a waiting document of another user could be read if this job made room."""
    with services.database.begin() as session:
        job = job_store.find_job(session, job_id)
        return job is not None and queue.has_others_waiting(session, job.document_id)


def hand_back(
    services: Services, job_id: UUID, *, number: int | None = None, is_slow: bool = False
) -> None:
    """Queue an interrupted job again without counting an attempt. A job that `is_slow` goes to the
    slow queue. Without `number` this applies to any attempt that is running."""
    with services.database.begin() as session:
        locked = _lock_running_job(session, job_id, number)
        if locked is not None:
            job, _ = locked
            job.attempts -= 1
            session.flush()
            name = queue.SLOW_QUEUE if is_slow else None
            queue.enqueue(session, job_id, is_continued=True, name=name)


def postpone(services: Services, attempt: Attempt, error: PortalError) -> None:
    """Queue a job again in a minute, for a cause outside the job. No attempt is counted, however
    often this happens."""
    with services.database.begin() as session:
        locked = _lock_running_job(session, attempt.job_id, attempt.number)
        if locked is not None:
            job, document = locked
            job.attempts -= 1
            _schedule_retry(session, job, document, Failure.of(error), wait_s=_POSTPONED_S)


def fail(
    services: Services, job_id: UUID, error: PortalError, *, number: int | None = None
) -> None:
    """End an attempt with an error. A temporary error is retried after a pause, up to three
    attempts. Otherwise the job fails with a reason the user can read, and so does a document that
    has no earlier text. Without `number` this applies to any attempt that is running."""
    failure = Failure.of(error)
    with services.database.begin() as session:
        locked = _lock_running_job(session, job_id, number)
        if locked is None:
            return
        job, document = locked
        job.failed_attempts += 1
        session.flush()
        if isinstance(error, _MAY_PASS) and job.failed_attempts < MAX_ATTEMPTS:
            wait_s = BACKOFF_S[job.failed_attempts - 1]
            _schedule_retry(session, job, document, failure, wait_s=wait_s)
            return
        _end(session, job, document, JobStatus.FAILED, failure)


def _lock_running_job(
    session: Session, job_id: UUID, number: int | None
) -> tuple[JobRow, DocumentRow] | None:
    if number is not None:
        return job_store.lock_attempt(session, job_id, number)
    locked = job_store.lock_job(session, job_id)
    return locked if locked is not None and locked[0].status == JobStatus.PROCESSING else None


def _schedule_retry(
    session: Session, job: JobRow, document: DocumentRow, failure: Failure, *, wait_s: float
) -> None:
    job.error = failure.as_json()
    session.flush()
    queue.enqueue(session, job.id, wait_s=wait_s, is_continued=True)
    if document.current_job_id is None:
        document_store.set_status(session, document, DocumentStatus.QUEUED)


def fail_crashing_job(services: Services, job_id: UUID) -> None:
    """Fail a job whose file killed a reading process in which nothing else ran."""
    with services.database.begin() as session:
        original = file_store.find_original_of_job(session, job_id)
    if original is not None:
        fail(services, job_id, KilledWorker(name=original.file_name, times=MAX_ATTEMPTS))


def cancel(session: Session, document: DocumentRow, failure: Failure) -> bool:
    """Cancel the queued or running job of a locked document; return whether there was one. The
    worker notices before it stores anything more, and the queue entry then finds the job done."""
    job = job_store.find_unfinished(session, document.id)
    if job is None:
        return False
    _end(session, job, document, JobStatus.CANCELLED, failure)
    return True


def _forget_upgrade(session: Session, document: DocumentRow) -> None:
    """Restore a document to its state before its file was read again, and do not try again."""
    current = revisions.find_current(session, document.id)
    if current is not None:
        version = FORMATS[MediaType(document.media_type)].reader_version
        outdated_texts.set_version(session, current, version)
    session.flush()
    revisions.delete_unread(session, document)


def _end(
    session: Session, job: JobRow, document: DocumentRow, status: JobStatus, failure: Failure
) -> None:
    """End a job without its text. A document that has searchable text stays ready: it is still
    searched, and uploading the same bytes again still counts as a duplicate."""
    job_store.finish(session, job, status, failure=failure)
    if job.config.get("is_upgrade"):
        _forget_upgrade(session, document)
        return
    if status is JobStatus.FAILED:
        notifications.add_ending(session, job.id, NotificationKind.FAILED)
    searchable = document.current_job_id is not None
    document_store.set_status(
        session,
        document,
        DocumentStatus.READY if searchable else DocumentStatus.FAILED,
        None if searchable else failure,
    )
