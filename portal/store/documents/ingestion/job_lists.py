"""Lists of jobs, limited to documents visible to the user and not in the trash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, and_, func, select
from sqlalchemy.orm import Session

from portal.domain.documents import Failure
from portal.domain.documents.jobs import (
    ENDED_WITHOUT_TEXT,
    UNFINISHED,
    Job,
    JobStage,
    JobStatus,
    ListedJob,
    QueueState,
)
from portal.domain.paging import ListPage
from portal.domain.people import User
from portal.errors import PERMANENT
from portal.store.cursors import latest_first
from portal.store.documents.rows import NEWEST_JOB
from portal.store.documents.selection import listed_for
from portal.store.models import DocumentRow, JobRow, UserRow


def _select_shown(user: User, *columns: Any) -> Select[Any]:
    return (
        select(*columns)
        .select_from(JobRow)
        .join(DocumentRow, DocumentRow.id == JobRow.document_id)
        .where(listed_for(user))
    )


def _select_listed(user: User) -> Select[Any]:
    can_retry = and_(
        JobRow.status.in_([status.value for status in ENDED_WITHOUT_TEXT]),
        JobRow.file_id.is_not(None),
        JobRow.id == NEWEST_JOB,
    )
    columns = (JobRow, DocumentRow.title, UserRow.name, can_retry)
    return _select_shown(user, *columns).outerjoin(UserRow, UserRow.id == DocumentRow.owner_id)


def list_jobs(
    session: Session,
    user: User,
    *,
    status: JobStatus | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[ListedJob]:
    """Return jobs of documents visible to the user, newest first. Raises MalformedRequest on a bad
    cursor."""
    statement = _select_listed(user)
    if status is not None:
        statement = statement.where(JobRow.status == status.value)
    return latest_first(
        session,
        statement,
        JobRow.created_at,
        JobRow.id,
        cursor=cursor,
        limit=limit,
        to_item=_to_listed,
        place=lambda one: (one.job.queued_at, one.job.id),
    )


def find_job(session: Session, user: User, job_id: UUID) -> ListedJob | None:
    row = session.execute(_select_listed(user).where(JobRow.id == job_id)).one_or_none()
    return _to_listed(row) if row else None


def by_document(session: Session, job_ids: Sequence[UUID]) -> dict[UUID, Job]:
    """Return jobs by their document's id. The caller passes jobs of documents that the user may
    see."""
    rows = session.scalars(select(JobRow).where(JobRow.id.in_(job_ids))) if job_ids else ()
    return {row.document_id: _to_job(row) for row in rows}


def queue_state(session: Session, user: User) -> QueueState:
    """Return the state of the queue, counting only documents visible to the user."""
    unfinished = _select_shown(
        user,
        func.count().filter(JobRow.status == JobStatus.QUEUED.value),
        func.count().filter(JobRow.status == JobStatus.PROCESSING.value),
        func.min(JobRow.created_at).filter(JobRow.status == JobStatus.QUEUED.value),
    ).where(JobRow.status.in_([status.value for status in UNFINISHED]))
    queued, processing, since = session.execute(unfinished).one()
    return QueueState(
        queued=queued,
        processing=processing,
        failed=count_failed(session, user),
        waiting_since=since,
    )


def count_failed(session: Session, user: User, *, only_curable: bool = False) -> int:
    """Return how many documents `failed_documents` returns."""
    failed = _select_failed(user, only_curable=only_curable, columns=[func.count()])
    return session.scalar(failed) or 0


def failed_documents(session: Session, user: User, *, only_curable: bool) -> list[UUID]:
    """Return the documents whose last job failed, in upload order: the user's own or, for an
    administrator, those of all users. `only_curable` leaves out permanent failures."""
    statement = _select_failed(user, only_curable=only_curable, columns=[DocumentRow.id])
    return list(session.scalars(statement.order_by(DocumentRow.created_at, DocumentRow.id)))


def _select_failed(user: User, *, only_curable: bool, columns: list[Any]) -> Select[Any]:
    """Select failed documents by their job. A document stays ready when a job fails beside its
    text, and is "failed" when a user cancelled its first job, which needs no retry."""
    statement = _select_shown(user, *columns).where(
        JobRow.status == JobStatus.FAILED.value,
        JobRow.file_id.is_not(None),
        JobRow.id == NEWEST_JOB,
    )
    if only_curable:
        statement = statement.where(JobRow.error["code"].astext.not_in(PERMANENT))
    if not user.is_admin:
        statement = statement.where(DocumentRow.owner_id == user.id)
    return statement


def _to_listed(row: Any) -> ListedJob:
    job_row, title, owner_name, can_retry = row
    job = _to_job(job_row)
    is_curable = not (job.failure and job.failure.is_permanent)
    return ListedJob(
        job=job,
        title=title,
        owner_name=owner_name or "",
        can_retry=can_retry and is_curable,
    )


def _to_job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        document_id=row.document_id,
        status=JobStatus(row.status),
        stage=JobStage(row.stage) if row.stage else None,
        done=row.done_count,
        total=row.total_count,
        attempts=row.attempts,
        failure=Failure.stored(row.error),
        queued_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        retry_at=row.retry_at,
    )
