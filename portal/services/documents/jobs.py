"""Jobs as people follow them: how far each is, and cancelling and trying again."""

from __future__ import annotations

from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure
from portal.domain.jobs import (
    ENDED_WITHOUT_TEXT,
    Job,
    JobPage,
    JobStatus,
    ListedJob,
    QueueState,
)
from portal.domain.people import User
from portal.errors import N_, Conflict, JobCancelled, NotFound
from portal.services import Services
from portal.services.documents import attempts
from portal.services.documents.library import editable, refuse_elsewhere
from portal.store.documents import files as file_store
from portal.store.documents import job_lists
from portal.store.documents import jobs as job_store
from portal.store.documents import rows as document_store
from portal.store.session import Session


def list_jobs(
    services: Services,
    user: User,
    *,
    status: JobStatus | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> JobPage:
    """Jobs of documents that a person may see, newest first. Raises MalformedRequest on a bad
    cursor."""
    with services.database.begin() as session:
        return job_lists.list_jobs(session, user, status=status, cursor=cursor, limit=limit)


def get_job(services: Services, user: User, job_id: UUID) -> ListedJob:
    """Raises NotFound, also for what the person may not see."""
    with services.database.begin() as session:
        found = job_lists.find_job(session, user, job_id)
    if found is None:
        raise NotFound
    return found


def newest_jobs(services: Services, job_ids: list[UUID]) -> dict[UUID, Job]:
    """Jobs by their document's id; only of documents that the caller was shown."""
    with services.database.begin() as session:
        return job_lists.by_document(session, job_ids)


def queue_state(services: Services, user: User) -> QueueState:
    """How much there is to do for the documents that a person may see."""
    with services.database.begin() as session:
        return job_lists.queue_state(session, user)


def count_failed(services: Services, user: User, *, own: bool = False) -> int:
    """How many documents a person may try again whose last job failed."""
    with services.database.begin() as session:
        return job_lists.count_failed(session, user, own=own)


def cancel(services: Services, user: User, document_id: UUID) -> None:
    """End what is queued or being done for a document: it can be tried again, and goes on where it
    was. Raises NotFound, Forbidden, Conflict when nothing is to be done."""
    with services.database.begin() as session:
        document = editable(session, user, document_id, deleted=False)
        if not attempts.cancel(session, document, Failure(JobCancelled.code)):
            raise Conflict(reason=N_("this document has no job in progress"))


def retry(services: Services, user: User, document_id: UUID) -> None:
    """Queue a document again that failed or was cancelled. Raises NotFound, Forbidden, Conflict,
    and AlreadyElsewhere where its file is another document by now."""
    with services.database.begin() as session:
        _retry(session, user, document_id)


def retry_failed(services: Services, user: User, *, own: bool = False) -> int:
    """Queue again all documents that a person may change, or with `own` their own ones, whose last
    job failed, in the order of their upload; gives how many. What was cancelled, and those that
    `retry` refuses, stay as they are."""
    with services.database.begin() as session:
        failed = job_lists.failed_documents(session, user, own=own)
    # A transaction each: one that locked the content of many would wait in another order for it
    # than an upload of the same files does.
    return sum(_could_retry(services, user, document_id) for document_id in failed)


def _could_retry(services: Services, user: User, document_id: UUID) -> bool:
    try:
        retry(services, user, document_id)
    except (Conflict, NotFound):
        return False
    return True


def _retry(session: Session, user: User, document_id: UUID) -> None:
    document = editable(session, user, document_id, deleted=False)
    job = job_store.find_newest(session, document_id)
    if job is None or job.status not in ENDED_WITHOUT_TEXT or job.file_id is None:
        raise Conflict(reason=N_("only a failed document can be retried"))
    original = file_store.find_original_of_job(session, job.id)
    if original is not None:
        refuse_elsewhere(session, document, original.sha256)
    job_store.begin_again(session, job)
    searchable = document.current_job_id is not None
    status = DocumentStatus.READY if searchable else DocumentStatus.QUEUED
    document_store.set_status(session, document_id, status)
