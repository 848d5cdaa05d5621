"""Jobs: one ingestion each, and what is told of how far it is."""

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
"""It can be tried again."""


class JobStage(StrEnum):
    """What a job is at: its counts are pages while it reads, chunks while it embeds."""

    READING = "reading"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Job:
    """How far a job is: `done` of `total` pages or chunks, 0 of 0 before they are counted.

    `attempts` are those begun, without those that made room for others. `failure` says why the
    last one ended; with `retry_at` the next one is due then.
    """

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
    """A job as lists show it, with its document. `can_retry`: it ended without its text, no
    later one of its document was begun, and the user may."""

    job: Job
    title: str
    owner_name: str
    can_edit: bool
    can_retry: bool


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of a list; `next_cursor` is opaque and None at the end."""

    items: tuple[ListedJob, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class QueueState:
    """How much there is to do: numbers of documents, and how long the first one waits."""

    queued: int
    processing: int
    failed: int
    waiting_since: datetime | None
