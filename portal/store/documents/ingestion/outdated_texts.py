"""Texts made by an older version of a reader, to be read again in the background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text, update
from sqlalchemy.orm import Session

from portal.domain.documents import ExtractedText, MediaType
from portal.store.models import DocumentRevisionRow, JobRow

# Documents with a later job are left alone: a new version, even a failed one, comes first.
_OUTDATED = text(
    """
    SELECT d.id AS document_id, current.file_id, current.config->>'encoding' AS encoding
    FROM documents d
    JOIN jobs current ON current.id = d.current_job_id
    JOIN document_revisions r ON r.id = current.revision_id
    JOIN stored_files f ON f.id = current.file_id
    JOIN unnest(CAST(:media_types AS text[]), CAST(:versions AS int[])) AS reader (type, version)
      ON reader.type = COALESCE(f.media_type, d.media_type)
    WHERE r.reader_version < reader.version AND d.deleted_at IS NULL
      AND NOT EXISTS (
        SELECT FROM jobs later
        WHERE later.document_id = d.id AND later.created_at > current.created_at
      )
    ORDER BY d.created_at DESC, d.id
    LIMIT :limit
    FOR UPDATE OF d SKIP LOCKED
    """
)
_IS_IDLE = text(
    "SELECT NOT EXISTS (SELECT FROM jobs j JOIN documents d ON d.id = j.document_id"
    " WHERE j.status IN ('queued', 'processing') AND d.deleted_at IS NULL)"
)


def is_idle(session: Session) -> bool:
    """Return whether no document is queued or being read."""
    return bool(session.scalar(_IS_IDLE))


def lock_outdated(
    session: Session, versions: Mapping[MediaType, int], *, limit: int
) -> Sequence[Any]:
    """Lock some documents whose text an older reader made, until the transaction ends. Return rows
    of `document_id`, `file_id` and the chosen `encoding`, newest documents first."""
    binds = {
        "media_types": [media_type.value for media_type in versions],
        "versions": list(versions.values()),
        "limit": limit,
    }
    return session.execute(_OUTDATED, binds).all()


def renew(
    session: Session, revision_id: UUID, extracted: ExtractedText, *, reader_version: int
) -> None:
    """Update a revision with the details that a newer reader found in the same text."""
    _update(
        session,
        revision_id,
        headings=[[heading.level, heading.title, heading.start] for heading in extracted.headings],
        blocks=[block.as_json() for block in extracted.blocks],
        reader_version=reader_version,
    )


def set_version(session: Session, revision_id: UUID, reader_version: int) -> None:
    """Mark a text as read by this reader version, which failed, so that it is not retried."""
    _update(session, revision_id, reader_version=reader_version)


def _update(session: Session, revision_id: UUID, **values: object) -> None:
    session.execute(
        update(DocumentRevisionRow).where(DocumentRevisionRow.id == revision_id).values(**values)
    )


def take_over(session: Session, revision_id: UUID, job_id: UUID) -> None:
    """Make a job the only one of its revision. Each revision is listed once, with the job that made
    the searchable chunks."""
    session.execute(
        update(JobRow)
        .where(JobRow.revision_id == revision_id, JobRow.id != job_id)
        .values(revision_id=None)
    )
