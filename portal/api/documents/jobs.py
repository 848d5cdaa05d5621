"""Serve jobs: progress, cancelling and retrying."""

from __future__ import annotations

from uuid import UUID

from apiflask import APIBlueprint

from portal.api.documents.job_schemas import (
    JobListResponse,
    JobQuery,
    ListedJobModel,
    QueueModel,
    RetriedResponse,
    listed_model,
)
from portal.api.documents.knowledge import TAG, document_model
from portal.api.documents.knowledge_schemas import DocumentModel
from portal.api.schemas import error_responses
from portal.http import context
from portal.services.documents import library
from portal.services.documents.ingestion import jobs

blueprint = APIBlueprint("jobs", __name__, url_prefix="/api/knowledge", tag=TAG)


@blueprint.get("/jobs")
@blueprint.input(JobQuery, location="query")
@blueprint.output(JobListResponse)
@blueprint.doc(
    summary="List jobs",
    description="Each job is one ingestion of a document visible to you, newest first.",
)
def list_jobs(query_data: JobQuery) -> JobListResponse:
    services, user = context.caller()
    page = jobs.list_jobs(
        services, user, status=query_data.status, cursor=query_data.cursor, limit=query_data.limit
    )
    return JobListResponse(
        jobs=[listed_model(item) for item in page.items],
        queue=QueueModel.of(jobs.queue_state(services, user)),
        next_cursor=page.next_cursor,
    )


@blueprint.get("/jobs/<uuid:job_id>")
@blueprint.output(ListedJobModel)
@blueprint.doc(summary="Get a job")
def get_job(job_id: UUID) -> ListedJobModel:
    return listed_model(jobs.get_job(*context.caller(), job_id))


@blueprint.post("/documents/<uuid:document_id>/cancel")
@blueprint.output(DocumentModel)
@blueprint.doc(
    summary="Cancel processing a document",
    description="What is stored of it is kept for another try; it is not searched.",
    responses=error_responses(409),
)
def cancel(document_id: UUID) -> DocumentModel:
    jobs.cancel(*context.caller(), document_id)
    return _document(document_id)


@blueprint.post("/documents/<uuid:document_id>/retry")
@blueprint.output(DocumentModel, status_code=202)
@blueprint.doc(
    summary="Retry a failed or cancelled document",
    description="409 also when the owner has another document with the same file.",
    responses=error_responses(409),
)
def retry(document_id: UUID) -> DocumentModel:
    jobs.retry(*context.caller(), document_id)
    return _document(document_id)


@blueprint.post("/documents/retry-failed")
@blueprint.output(RetriedResponse, status_code=202)
@blueprint.doc(
    summary="Retry all failed documents",
    description="For administrators, those of all users. Includes new versions and re-read files, "
    "but not cancelled ones. Skips documents whose file the owner has in another document.",
)
def retry_failed() -> RetriedResponse:
    return RetriedResponse(count=jobs.retry_failed(*context.caller()))


def _document(document_id: UUID) -> DocumentModel:
    return document_model(library.get_summary(*context.caller(), document_id))
