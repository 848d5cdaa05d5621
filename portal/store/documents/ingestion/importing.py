"""Queries of an import of many files: which exist already, and how far the others are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from portal.domain.documents import DocumentStatus, Failure, Visibility
from portal.domain.documents.jobs import JobStage
from portal.store.documents.rows import NEWEST_JOB
from portal.store.models import DocumentRow, JobRow


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a document; `chunks` are those that are searchable or will be."""

    document_id: UUID
    status: DocumentStatus
    failure: Failure | None
    chunks: int


@dataclass(frozen=True, slots=True)
class Present:
    """An existing document with one of the contents."""

    document_id: UUID
    status: DocumentStatus
    visibility: Visibility


def find_contents(
    session: Session, *, owner_id: UUID, hashes: Collection[str], visibility: Visibility
) -> dict[str, Present]:
    """Return an owner's documents that have these contents, by sha256. Of several, prefers one that
    did not fail, then one with the requested visibility."""
    rows = session.execute(
        select(DocumentRow.sha256, DocumentRow.id, DocumentRow.status, DocumentRow.visibility)
        .ext(distinct_on(DocumentRow.sha256))
        .where(
            DocumentRow.owner_id == owner_id,
            DocumentRow.sha256.in_(hashes),
            DocumentRow.deleted_at.is_(None),
            DocumentRow.purged_at.is_(None),
        )
        .order_by(
            DocumentRow.sha256,
            DocumentRow.status == DocumentStatus.FAILED.value,
            DocumentRow.visibility != visibility.value,
            DocumentRow.created_at,
            DocumentRow.id,
        )
    )
    return {
        sha256: Present(id_, DocumentStatus(status), Visibility(seen))
        for sha256, id_, status, seen in rows
    }


def read_progress(
    session: Session, *, owner_id: UUID, document_ids: Sequence[UUID]
) -> list[Progress]:
    """Return the progress of these documents of an owner, unordered and without deleted ones."""
    rows = session.execute(
        select(
            DocumentRow.id, DocumentRow.status, DocumentRow.error, JobRow.stage, JobRow.done_count
        )
        .join(JobRow, JobRow.id == NEWEST_JOB)
        .where(
            DocumentRow.owner_id == owner_id,
            DocumentRow.id.in_(document_ids),
            DocumentRow.deleted_at.is_(None),
        )
    )
    return [
        Progress(
            document_id=id_,
            status=DocumentStatus(status),
            failure=Failure.stored(error),
            chunks=done if stage == JobStage.EMBEDDING else 0,
        )
        for id_, status, error, stage, done in rows
    ]
