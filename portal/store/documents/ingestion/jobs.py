"""Ingestion jobs: their rows, from the upload to the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.orm import Session

from portal.domain.documents import Failure
from portal.domain.documents.jobs import UNFINISHED, JobStage, JobStatus
from portal.store.documents.ingestion import queue
from portal.store.models import DocumentRow, JobRow

# The server locks a row's tables in the order of `of`.
_LOCKED = (
    select(JobRow, DocumentRow)
    .join(DocumentRow, DocumentRow.id == JobRow.document_id)
    .where(JobRow.id == bindparam("job_id"))
    .with_for_update(of=[DocumentRow, JobRow], key_share=True)
    .execution_options(populate_existing=True)
)


def add_job(
    session: Session,
    *,
    document_id: UUID,
    file_id: UUID | None,
    config: Mapping[str, Any] | None = None,
) -> UUID:
    """Insert a job and enqueue it on the same connection: a rollback removes both."""
    row = JobRow(
        document_id=document_id,
        file_id=file_id,
        config=dict(config or {}),
        # Not the start of the transaction, which may have waited for the job before it.
        created_at=func.clock_timestamp(),
    )
    session.add(row)
    session.flush()
    queue.enqueue(session, row.id)
    return row.id


def find_job(session: Session, job_id: UUID) -> JobRow | None:
    return session.get(JobRow, job_id)


def lock_job(session: Session, job_id: UUID) -> tuple[JobRow, DocumentRow] | None:
    """Return a job and its document, both locked until the transaction ends; None if the job is
    gone. The document is always locked first: purging locks the document and then deletes its jobs,
    so the opposite order would deadlock."""
    row = session.execute(_LOCKED, {"job_id": job_id}).one_or_none()
    return (row[0], row[1]) if row is not None else None


def lock_attempt(session: Session, job_id: UUID, attempt: int) -> tuple[JobRow, DocumentRow] | None:
    """Lock a job as `lock_job` does, if this attempt is the current one. Returns None when it was
    cancelled, or when another worker took over because this one seemed dead."""
    locked = lock_job(session, job_id)
    if locked is None:
        return None
    row, _ = locked
    is_ours = row.status == JobStatus.PROCESSING and row.attempts == attempt
    return locked if is_ours else None


def is_attempt(session: Session, job_id: UUID, attempt: int) -> bool:
    """Return whether this attempt is the current one of a running job."""
    row = session.get(JobRow, job_id)
    return row is not None and row.status == JobStatus.PROCESSING and row.attempts == attempt


def find_newest(session: Session, document_id: UUID) -> JobRow | None:
    """Return a document's last job."""
    return session.scalar(
        select(JobRow)
        .where(JobRow.document_id == document_id)
        .order_by(JobRow.created_at.desc(), JobRow.id)
        .limit(1)
    )


def find_unfinished(session: Session, document_id: UUID) -> JobRow | None:
    """Return a document's last job if it is unfinished."""
    job = find_newest(session, document_id)
    return job if job is not None and job.status in UNFINISHED else None


def start(session: Session, row: JobRow) -> int:
    """Record the start of an attempt; return its number."""
    if row.status == JobStatus.PROCESSING:
        # The previous worker did not report its end.
        row.deaths += 1
    row.status, row.retry_at, row.finished_at = JobStatus.PROCESSING.value, None, None
    row.attempts += 1
    if row.started_at is None:
        row.started_at = func.now()
    session.flush()
    return row.attempts


def note_progress(
    session: Session, job_id: UUID, attempt: int, *, stage: JobStage, done: int, total: int
) -> bool:
    """Record the progress of an attempt; return False when it is no longer the current one."""
    noted = session.scalar(
        update(JobRow)
        .where(
            JobRow.id == job_id,
            JobRow.status == JobStatus.PROCESSING.value,
            JobRow.attempts == attempt,
        )
        .values(stage=stage.value, done_count=done, total_count=total)
        .returning(JobRow.id)
    )
    return noted is not None


def finish(
    session: Session, row: JobRow, status: JobStatus, *, failure: Failure | None = None
) -> None:
    row.status, row.error = status.value, failure.as_json() if failure else None
    row.finished_at, row.retry_at = func.now(), None
    session.flush()


def requeue_finished(session: Session, row: JobRow) -> None:
    """Queue a finished job again with its failures reset; what it stored is kept."""
    row.error, row.finished_at, row.started_at = None, None, None
    row.failed_attempts = row.deaths = 0
    session.flush()
    queue.enqueue(session, row.id)
