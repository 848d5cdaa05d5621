"""Revisions of a document: lists, texts, and versions that were not read to the end."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from sqlalchemy import RowMapping, Select, and_, delete, func, select, update
from sqlalchemy.orm import Session

from portal.domain.documents import MediaType
from portal.domain.documents.jobs import ENDED_WITHOUT_TEXT, JobStatus
from portal.domain.documents.revisions import MAX_NUMBER, Revision, UnreadVersion
from portal.domain.documents.structure import LaidOutText
from portal.domain.paging import CountedPage
from portal.errors import MalformedRequest
from portal.store.documents.ingestion import files
from portal.store.documents.ingestion.files import Original
from portal.store.documents.rows import NEWEST_JOB
from portal.store.documents.texts.chunks import delete_chunks, stretch_of_body
from portal.store.documents.texts.layouts import blocks_in, headings_in, laid_out
from portal.store.models import (
    DocumentChunkRow,
    DocumentRevisionRow,
    DocumentRow,
    JobRow,
    StoredFileRow,
    UserRow,
)

_MAX_DIGITS = 10


def _select_published(document_id: UUID) -> Select[Any]:
    """Select texts that were searchable at some time: each has the job that published it."""
    number = DocumentRevisionRow.revision_number
    statement: Any = (
        select(
            DocumentRevisionRow.id,
            number.label("number"),
            DocumentRevisionRow.created_at,
            func.coalesce(UserRow.name, "").label("uploaded_by"),
            func.coalesce(StoredFileRow.file_name, DocumentRow.file_name).label("file_name"),
            func.coalesce(StoredFileRow.media_type, DocumentRow.media_type).label("media_type"),
            StoredFileRow.size_bytes,
            StoredFileRow.sha256,
            DocumentRevisionRow.extractor,
            DocumentRevisionRow.encoding,
            func.jsonb_array_length(DocumentRevisionRow.pages).label("page_count"),
            DocumentRevisionRow.character_count,
            (JobRow.id == DocumentRow.current_job_id).label("is_current"),
            func.lag(number).over(order_by=number).label("previous"),
            func.coalesce(
                JobRow.file_id == func.lag(JobRow.file_id).over(order_by=number), False
            ).label("is_reread"),
            DocumentRevisionRow.characters_added,
            DocumentRevisionRow.characters_removed,
        )
        .select_from(DocumentRevisionRow)
        .join(
            JobRow,
            and_(
                JobRow.revision_id == DocumentRevisionRow.id,
                JobRow.document_id == DocumentRevisionRow.document_id,
            ),
        )
        .join(DocumentRow, DocumentRow.id == DocumentRevisionRow.document_id)
        .outerjoin(StoredFileRow, StoredFileRow.id == JobRow.file_id)
        .outerjoin(
            UserRow, UserRow.id == func.coalesce(StoredFileRow.uploaded_by, DocumentRow.owner_id)
        )
        .where(
            DocumentRevisionRow.document_id == document_id, JobRow.status == JobStatus.READY.value
        )
    )
    return cast("Select[Any]", statement)


def _to_revision(values: RowMapping) -> Revision:
    is_current = bool(values["is_current"])
    media_type = MediaType(values["media_type"])
    return Revision(**{**values, "media_type": media_type, "is_current": is_current})


def list_revisions(
    session: Session, document_id: UUID, *, cursor: str | None, limit: int
) -> CountedPage[Revision]:
    """Return a document's revisions, latest first. Raises MalformedRequest on a bad cursor."""
    published = _select_published(document_id).subquery()
    total = session.scalar(select(func.count()).select_from(published)) or 0
    statement = select(published).order_by(published.c.number.desc()).limit(limit + 1)
    if cursor is not None:
        statement = statement.where(published.c.number < _number(cursor))
    rows = session.execute(statement).mappings().all()
    items = tuple(_to_revision(row) for row in rows[:limit])
    next_cursor = str(items[-1].number) if len(rows) > limit else None
    return CountedPage(items=items, next_cursor=next_cursor, total_count=total)


def _number(cursor: str) -> int:
    is_number = cursor.isascii() and cursor.isdecimal() and len(cursor) <= _MAX_DIGITS
    if not is_number or int(cursor) > MAX_NUMBER:
        raise MalformedRequest("invalid cursor")
    return int(cursor)


def find_revision(session: Session, document_id: UUID, number: int) -> Revision | None:
    published = _select_published(document_id).subquery()
    if number > MAX_NUMBER:
        return None
    one = select(published).where(published.c.number == number)
    row = session.execute(one).mappings().one_or_none()
    return _to_revision(row) if row else None


def find_number(session: Session, document_id: UUID, revision_id: UUID) -> int | None:
    """Return the number of a revision in its document."""
    return session.scalar(
        select(DocumentRevisionRow.revision_number).filter_by(
            document_id=document_id, id=revision_id
        )
    )


def find_current(session: Session, document_id: UUID) -> UUID | None:
    """Return the revision that is searchable."""
    return session.scalar(
        select(JobRow.revision_id)
        .join(DocumentRow, DocumentRow.current_job_id == JobRow.id)
        .where(DocumentRow.id == document_id)
    )


def read_body(session: Session, revision_id: UUID) -> str | None:
    """Return the text of a revision; None if it was purged."""
    body = DocumentRevisionRow.body.expression
    return session.scalar(select(body).where(DocumentRevisionRow.id == revision_id))


def read_laid_out(
    session: Session, revision_id: UUID, *, start: int, end: int
) -> LaidOutText | None:
    """Return characters `start` to `end` of a revision with their structure; None if it was
    purged."""
    row = session.execute(
        select(
            stretch_of_body(start, end),
            blocks_in(DocumentRevisionRow.blocks, start, end),
            headings_in(DocumentRevisionRow.headings, start, end),
        ).where(DocumentRevisionRow.id == revision_id)
    ).one_or_none()
    return laid_out(row[0], start, row[1], row[2]) if row else None


def find_original(session: Session, document_id: UUID, revision_id: UUID) -> Original | None:
    """Return the file that a revision was read from."""
    job_id = session.scalar(
        select(JobRow.id).filter_by(document_id=document_id, revision_id=revision_id)
    )
    return files.find_original_of_job(session, job_id) if job_id else None


def record_change_counts(session: Session, revision_id: UUID, *, added: int, removed: int) -> None:
    """Record how many characters differ from the previous revision."""
    session.execute(
        update(DocumentRevisionRow)
        .where(DocumentRevisionRow.id == revision_id)
        .values(characters_added=added, characters_removed=removed)
    )


# --- versions that are not searchable -------------------------------------------------------------


def find_unread(session: Session, document_id: UUID) -> UnreadVersion | None:
    """Return a document's last version if it is not the searchable one."""
    current = select(JobRow.file_id).where(JobRow.id == DocumentRow.current_job_id)
    row = session.execute(
        select(
            JobRow.status,
            func.coalesce(StoredFileRow.file_name, DocumentRow.file_name),
            func.coalesce(StoredFileRow.media_type, DocumentRow.media_type),
            func.coalesce(
                JobRow.file_id == current.correlate(DocumentRow).scalar_subquery(), False
            ),
        )
        .select_from(JobRow)
        .join(DocumentRow, DocumentRow.id == JobRow.document_id)
        .outerjoin(StoredFileRow, StoredFileRow.id == JobRow.file_id)
        .where(
            JobRow.document_id == document_id,
            JobRow.id == NEWEST_JOB,
            JobRow.id != DocumentRow.current_job_id,
        )
    ).one_or_none()
    if row is None:
        return None
    status, file_name, media_type, is_reread = row
    return UnreadVersion(JobStatus(status), file_name, MediaType(media_type), is_reread)


def delete_unread(session: Session, document: DocumentRow) -> None:
    """Delete versions newer than the searchable text that ended without being published."""
    current = session.get_one(JobRow, document.current_job_id)
    ended = (
        select(JobRow.id, JobRow.file_id, JobRow.revision_id)
        .where(
            JobRow.document_id == document.id,
            JobRow.created_at > current.created_at,
            JobRow.status.in_([status.value for status in ENDED_WITHOUT_TEXT]),
        )
        .with_for_update()
    )
    rows = session.execute(ended).all()
    job_ids = [row.id for row in rows]
    delete_chunks(session, DocumentChunkRow.job_id.in_(job_ids))
    session.execute(delete(JobRow).where(JobRow.id.in_(job_ids)))
    session.execute(
        delete(DocumentRevisionRow).where(
            DocumentRevisionRow.id.in_([row.revision_id for row in rows if row.revision_id])
        )
    )
    files.delete_unused(session, [row.file_id for row in rows if row.file_id])
