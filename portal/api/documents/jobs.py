"""Serve jobs: progress, cancelling and retrying."""

from __future__ import annotations

from uuid import UUID

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.knowledge import TAG, document_model
from portal.api.documents.schemas.jobs import (
    JobListResponse,
    JobQuery,
    ListedJobModel,
    RetriedResponse,
    listed_model,
)
from portal.api.documents.schemas.knowledge import DocumentModel
from portal.http import context
from portal.services.documents import library
from portal.services.documents.ingestion import jobs

blueprint = ApiBlueprint("jobs", __name__, url_prefix="/api/knowledge", tag=TAG)


@blueprint.get("/jobs")
def list_jobs(query_data: JobQuery) -> JobListResponse:
    """List jobs.

    Each job is one ingestion of a document visible to you, newest first.
    """
    services, user = context.caller()
    page = jobs.list_jobs(
        services, user, status=query_data.status, cursor=query_data.cursor, limit=query_data.limit
    )
    listed = [listed_model(item) for item in page.items]
    return JobListResponse.of(page, jobs=listed, queue=jobs.queue_state(services, user))


@blueprint.get("/jobs/<uuid:job_id>")
def get_job(job_id: UUID) -> ListedJobModel:
    """Get a job."""
    return listed_model(jobs.get_job(*context.caller(), job_id))


@blueprint.post("/documents/<uuid:document_id>/cancel", errors=(409,))
def cancel(document_id: UUID) -> DocumentModel:
    """Cancel processing a document.

    Everything stored so far is kept for a retry, but is not searched.
    """
    jobs.cancel(*context.caller(), document_id)
    return _document(document_id)


@blueprint.post("/documents/<uuid:document_id>/retry", status_code=202, errors=(409,))
def retry(document_id: UUID) -> DocumentModel:
    """Retry a failed or cancelled document.

    409 also when the owner has another document with the same file.
    """
    jobs.retry(*context.caller(), document_id)
    return _document(document_id)


@blueprint.post("/documents/retry-failed", status_code=202)
def retry_failed() -> RetriedResponse:
    """Retry all failed documents.

    For administrators, retries those of all users. Includes new versions and re-read files, but not
    cancelled ones. Skips documents whose file the owner has in another document.
    """
    return RetriedResponse(count=jobs.retry_failed(*context.caller()))


def _document(document_id: UUID) -> DocumentModel:
    return document_model(library.get_summary(*context.caller(), document_id))
