"""Jobs: one ingestion each, and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import Failure


class JobStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNFINISHED = frozenset({JobStatus.QUEUED, JobStatus.PROCESSING})
ENDED_WITHOUT_TEXT = frozenset({JobStatus.FAILED, JobStatus.CANCELLED})
"""The statuses of jobs that can be retried."""


class JobStage(StrEnum):
    """The stage of a job; it counts pages while reading, chunks while embedding."""

    READING = "reading"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Job:
    """The progress of a job: `done` of `total` pages or chunks, 0 of 0 before they are counted.
    `attempts` does not count attempts that made room for other jobs. `failure` is why the last
    attempt ended; `retry_at` is when the next one is due."""

    id: UUID
    document_id: UUID
    status: JobStatus
    stage: JobStage | None
    done: int
    total: int
    attempts: int
    failure: Failure | None
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    retry_at: datetime | None


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job in a list, with its document. `can_retry` if it ended without a text, is the newest of
    its document, and a retry might succeed."""

    job: Job
    title: str
    owner_name: str
    can_retry: bool


@dataclass(frozen=True, slots=True)
class QueueState:
    """Numbers of documents in the queue, and since when the first one has been waiting."""

    queued: int
    processing: int
    failed: int
    waiting_since: datetime | None
