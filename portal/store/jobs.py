"""Ingestion jobs: our rows, and the queue's, written in the same transaction."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from portal import tracing
from portal.domain.documents import Failure
from portal.store.models import DocumentRow, JobRow

QUEUE_NAME = "ingest"
INDEX_TASK = "index_document"

_ENQUEUE = text(
    """
    SELECT procrastinate_defer_jobs_v1(ARRAY[
        CAST(
            ROW(CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL,
                CAST(:args AS jsonb), NULL)
            AS procrastinate_job_to_defer_v1
        )
    ])
    """
)


def add_job(session: Session, *, document_id: UUID, file_id: UUID | None) -> UUID:
    """Add a job and enqueue it on this very connection: roll back, and neither exists."""
    row = JobRow(document_id=document_id, file_id=file_id)
    session.add(row)
    session.flush()
    enqueue(session, row.id)
    return row.id


def enqueue(session: Session, job_id: UUID) -> None:
    arguments = {"job_id": str(job_id), "origin": tracing.origin()}
    session.execute(
        _ENQUEUE,
        {"queue": QUEUE_NAME, "task": INDEX_TASK, "args": json.dumps(arguments)},
    )


def lock_job(session: Session, job_id: UUID) -> JobRow | None:
    """The job, held with its document until the transaction ends.

    Always the document first: purging holds the document and then drops its jobs, and two
    transactions that lock in opposite orders would wait for each other for ever.
    """
    session.execute(
        select(DocumentRow.id)
        .join(JobRow, JobRow.document_id == DocumentRow.id)
        .where(JobRow.id == job_id)
        .with_for_update(of=DocumentRow)
    )
    return session.scalar(select(JobRow).where(JobRow.id == job_id).with_for_update())


def start(session: Session, job_id: UUID) -> None:
    session.execute(
        update(JobRow)
        .where(JobRow.id == job_id)
        .values(
            status="processing",
            attempts=JobRow.attempts + 1,
            started_at=func.coalesce(JobRow.started_at, func.now()),
        )
    )


def note_progress(session: Session, job_id: UUID, *, stage: str, done: int, total: int) -> None:
    session.execute(
        update(JobRow)
        .where(JobRow.id == job_id)
        .values(stage=stage, done_count=done, total_count=total)
    )


def finish(session: Session, job_id: UUID, *, status: str, failure: Failure | None = None) -> None:
    error = {"code": failure.code, "params": failure.params} if failure else None
    session.execute(
        update(JobRow)
        .where(JobRow.id == job_id)
        .values(status=status, error=error, finished_at=func.now())
    )


def unfinished_without_queue_entry(session: Session) -> list[UUID]:
    """Jobs that still want doing although the queue holds nothing for them."""
    rows: Any = session.execute(
        text(
            """
            SELECT j.id FROM jobs j JOIN documents d ON d.id = j.document_id
            WHERE d.deleted_at IS NULL AND j.status IN ('queued', 'processing')
              AND NOT EXISTS (
                SELECT 1 FROM procrastinate_jobs q
                WHERE q.status IN ('todo', 'doing') AND q.args->>'job_id' = CAST(j.id AS text)
              )
            ORDER BY j.created_at, j.id
            """
        )
    )
    return [row[0] for row in rows]


def has_live_workers(session: Session, *, within_s: float) -> bool:
    """Whether a worker of the queue showed a sign of life within the last seconds."""
    return bool(
        session.scalar(
            text(
                """
                SELECT EXISTS (
                    SELECT 1 FROM procrastinate_workers
                    WHERE last_heartbeat > now() - make_interval(secs => :within_s)
                )
                """
            ),
            {"within_s": within_s},
        )
    )
