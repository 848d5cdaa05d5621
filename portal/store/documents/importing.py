"""What an import of many files asks: which of them are there, and what became of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from portal.domain.documents import DocumentStatus, Failure, Visibility
from portal.domain.jobs import JobStage
from portal.store.documents.rows import NEWEST_JOB
from portal.store.models import DocumentRow, JobRow


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a document is; `chunks` are those that are searchable or will be."""

    document_id: UUID
    status: DocumentStatus
    failure: Failure | None
    chunks: int


@dataclass(frozen=True, slots=True)
class Present:
    """A document that has some content already."""

    document_id: UUID
    status: DocumentStatus
    visibility: Visibility


def find_contents(
    session: Session, *, owner_id: UUID, hashes: Collection[str], visibility: Visibility
) -> dict[str, Present]:
    """By sha256 those of these contents that an owner's documents have, be it one that failed; of
    several the one that is seen as wished."""
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
    """How far each of an owner's documents is, in no order; without those that are in the trash."""
    rows = session.execute(
        select(
            DocumentRow.id,
            DocumentRow.status,
            DocumentRow.error,
            JobRow.stage,
            JobRow.done_count,
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
