"""Bodies of jobs."""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.schemas import PageQuery, ResponseModel
from portal.domain.documents import Failure
from portal.domain.documents.jobs import Job, JobStage, JobStatus, ListedJob
from portal.http.messages import failure_message


class FailureModel(ResponseModel):
    code: str
    message: str


def failure_model(failure: Failure | None) -> FailureModel | None:
    """Return a failure in the reader's language."""
    return FailureModel.of(failure, message=failure_message(failure)) if failure else None


class JobModel(ResponseModel):
    id: UUID
    document_id: UUID
    status: JobStatus = Field(examples=[JobStatus.PROCESSING])
    stage: JobStage | None = Field(
        description="current stage, or the stage when it ended; null if not started",
        examples=[JobStage.EMBEDDING],
    )
    done: int = Field(description="pages while reading, passages while embedding", examples=[340])
    total: int = Field(description="total for `done`; 0 if not counted yet", examples=[900])
    attempts: int = Field(description="attempts started, including the current one", examples=[1])
    error: FailureModel | None = Field(
        description="why the last attempt failed, even if another is due", examples=[None]
    )
    queued_at: AwareDatetime
    started_at: AwareDatetime | None
    finished_at: AwareDatetime | None
    retry_at: AwareDatetime | None = Field(
        description="time of the next attempt, after a failed one", examples=[None]
    )

    @classmethod
    def of_job(cls, job: Job, **others: Any) -> Self:
        return cls.of(job, error=failure_model(job.failure), **others)


class ListedJobModel(JobModel):
    title: str = Field(description="title of the document")
    owner: str


def listed_model(listed: ListedJob) -> ListedJobModel:
    return ListedJobModel.of_job(listed.job, title=listed.title, owner=listed.owner_name)


class QueueModel(ResponseModel):
    queued: int = Field(description="queued documents")
    processing: int = Field(description="documents being processed")
    failed: int = Field(description="failed documents that you may retry")
    waiting_since: AwareDatetime | None = Field(
        description="when the oldest queued document was queued"
    )


class JobListResponse(ResponseModel):
    jobs: list[ListedJobModel]
    queue: QueueModel
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class JobQuery(PageQuery):
    status: JobStatus | None = Field(None, description="only jobs in this state")
    limit: int = Field(50, ge=1, le=200, description="jobs per page")


class RetriedResponse(ResponseModel):
    count: int = Field(description="number of documents queued again", examples=[3])
