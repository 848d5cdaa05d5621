"""Jobs as users follow them: progress, cancelling and retrying."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure
from portal.domain.documents.jobs import ENDED_WITHOUT_TEXT, ListedJob
from portal.domain.people import User
from portal.errors import Conflict, JobCancelled, NotFound, existing
from portal.services import Services
from portal.services.documents.ingestion import attempts
from portal.services.documents.library import find_editable, refuse_elsewhere
from portal.services.transactions import in_transaction
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import job_lists
from portal.store.documents.ingestion import jobs as job_store

list_jobs = in_transaction(job_lists.list_jobs)
newest_jobs = in_transaction(job_lists.by_document)
queue_state = in_transaction(job_lists.queue_state)


def get_job(services: Services, user: User, job_id: UUID) -> ListedJob:
    """Return a job. Raises NotFound, also for one the user may not see."""
    with services.database.begin() as session:
        return existing(job_lists.find_job(session, user, job_id))


def count_curable(services: Services, user: User) -> int:
    """Return how many documents with a failed last job the user may retry, without those that would
    fail again."""
    with services.database.begin() as session:
        return job_lists.count_failed(session, user, only_curable=True)


def cancel(services: Services, user: User, document_id: UUID) -> None:
    """Cancel the queued or running job of a document. It can be retried and then resumes where it
    stopped. Raises NotFound, Forbidden, Conflict when there is no unfinished job."""
    with services.database.begin() as session:
        document = find_editable(session, user, document_id, deleted=False)
        if not attempts.cancel(session, document, Failure(JobCancelled.code)):
            raise Conflict("this document has no job in progress")


def retry(services: Services, user: User, document_id: UUID) -> None:
    """Queue a failed or cancelled document again. Raises NotFound, Forbidden, Conflict, and
    AlreadyElsewhere if its file has become another document."""
    with services.database.begin() as session:
        document = find_editable(session, user, document_id, deleted=False)
        job = job_store.find_newest(session, document_id)
        if job is None or job.status not in ENDED_WITHOUT_TEXT or job.file_id is None:
            raise Conflict("only a failed document can be retried")
        original = file_store.find_original_of_job(session, job.id)
        if original is not None:
            refuse_elsewhere(session, user, document, original.sha256)
        job_store.requeue_finished(session, job)
        searchable = document.current_job_id is not None
        status = DocumentStatus.READY if searchable else DocumentStatus.QUEUED
        document_store.set_status(session, document, status)


def retry_failed(services: Services, user: User, *, only_curable: bool = False) -> int:
    """Retry the user's documents whose last job failed, or for an administrator those of all users;
    with `only_curable`, none that would fail again. Queue them in upload order and return their
    number. Cancelled documents, and those that `retry` refuses, are left as they are."""
    with services.database.begin() as session:
        failed = job_lists.failed_documents(session, user, only_curable=only_curable)
    # One transaction each: locking the content of many documents in another order than an upload of
    # the same files does would risk a deadlock.
    count = 0
    for document_id in failed:
        with suppress(Conflict, NotFound):
            retry(services, user, document_id)
            count += 1
    return count
