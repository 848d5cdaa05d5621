"""Documents: summaries, one document, and its life from upload to purge."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import BindParameter, Select, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session

from portal.domain.documents import (
    DocumentDetail,
    DocumentStatus,
    DocumentSummary,
    Failure,
    MediaType,
    OwnedDocuments,
    Visibility,
)
from portal.domain.documents.jobs import UNFINISHED
from portal.domain.people import User
from portal.errors import Message
from portal.store.documents.folders import folder_visible_to
from portal.store.documents.ingestion import files
from portal.store.documents.selection import (
    MAX_COMPOSED,
    PORTAL_COLLECTION,
    editable_by,
    listed_for,
    passes_gate,
)
from portal.store.documents.texts import chunks
from portal.store.models import (
    CollectionRow,
    DocumentChunkRow,
    DocumentRevisionRow,
    DocumentRow,
    FolderRow,
    JobRow,
    StoredFileRow,
    UserRow,
)

NEWEST_JOB = (
    select(JobRow.id)
    .where(JobRow.document_id == DocumentRow.id)
    .order_by(JobRow.created_at.desc(), JobRow.id)
    .limit(1)
    .correlate(DocumentRow)
    .scalar_subquery()
)
_CHUNK_COUNT = (
    select(func.count())
    .select_from(DocumentChunkRow)
    .where(DocumentChunkRow.job_id == DocumentRow.current_job_id)
    .correlate(DocumentRow)
    .scalar_subquery()
)
_WARNINGS = (
    select(DocumentRevisionRow.warnings)
    .join(JobRow, JobRow.revision_id == DocumentRevisionRow.id)
    .where(JobRow.id == DocumentRow.current_job_id)
    .correlate(DocumentRow)
    .scalar_subquery()
)

_DOCUMENT_ID: BindParameter[UUID] = bindparam("document_id")


def portal_collection_id(session: Session) -> UUID:
    return session.scalars(
        select(CollectionRow.id).where(CollectionRow.name == PORTAL_COLLECTION)
    ).one()


@lru_cache(maxsize=MAX_COMPOSED)
def shown_to(user: User, *, deleted: bool = False) -> Select[Any]:
    """Select documents visible to the user, or with `deleted` those in the user's trash."""
    return (
        select(
            DocumentRow,
            UserRow.name,
            NEWEST_JOB,
            _CHUNK_COUNT,
            _WARNINGS,
            FolderRow.id,
            FolderRow.name,
            editable_by(user).label("can_edit"),
        )
        .select_from(DocumentRow)
        .outerjoin(UserRow, UserRow.id == DocumentRow.owner_id)
        .outerjoin(FolderRow, and_(FolderRow.id == DocumentRow.folder_id, folder_visible_to(user)))
        .where(listed_for(user, deleted=deleted))
    )


def to_summary(row: Any) -> DocumentSummary:
    document, owner_name, job_id, chunk_count, warnings, folder_id, folder_name, can_edit = row[:8]
    error = document.error
    return DocumentSummary(
        id=document.id,
        title=document.title,
        file_name=document.file_name,
        media_type=MediaType(document.media_type),
        size_bytes=document.size_bytes,
        status=DocumentStatus(document.status),
        visibility=Visibility(document.visibility),
        domain=document.domain,
        owner_id=document.owner_id,
        owner_name=owner_name or "",
        created_at=document.created_at,
        failure=Failure.stored(error),
        job_id=job_id,
        chunk_count=chunk_count,
        deleted_at=document.deleted_at,
        can_edit=bool(can_edit),
        is_for_members=document.gate_id is not None,
        warnings=tuple(map(Message.stored, warnings or ())),
        folder_id=folder_id,
        folder_name=folder_name,
        tags=tuple(document.tags),
    )


def find_summary(
    session: Session, user: User, document_id: UUID, *, deleted: bool = False
) -> DocumentSummary | None:
    """Return a document visible to the user, or with `deleted` one in the user's trash."""
    row = session.execute(_summary(user, deleted), {"document_id": document_id}).one_or_none()
    return to_summary(row) if row else None


@lru_cache(maxsize=MAX_COMPOSED)
def _summary(user: User, deleted: bool) -> Select[Any]:
    return shown_to(user, deleted=deleted).where(DocumentRow.id == _DOCUMENT_ID)


def sees_any(session: Session, user: User) -> bool:
    """Return whether the user's lists have any document."""
    return session.scalar(select(DocumentRow.id).where(listed_for(user)).limit(1)) is not None


def is_visible(session: Session, user: User, document_id: UUID) -> bool:
    """Return whether a document is in the user's lists."""
    return session.scalar(_listed(user), {"document_id": document_id}) is not None


@lru_cache(maxsize=MAX_COMPOSED)
def _listed(user: User) -> Select[Any]:
    return select(DocumentRow.id).where(DocumentRow.id == _DOCUMENT_ID, listed_for(user))


def list_summaries(
    session: Session, user: User, document_ids: Sequence[UUID]
) -> list[DocumentSummary]:
    """Return summaries of these documents, without those hidden from the user or in the trash."""
    statement = shown_to(user).where(DocumentRow.id.in_(document_ids))
    return [to_summary(row) for row in session.execute(statement)]


def list_closed_to(session: Session, user: User, document_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the documents, with titles, that a user sees only as an administrator: others' private
    ones, and those in members-only folders that the user is not a member of."""
    rows = session.execute(
        select(DocumentRow.id, DocumentRow.title).where(
            DocumentRow.id.in_(document_ids),
            DocumentRow.owner_id.is_distinct_from(user.id),
            or_(
                DocumentRow.visibility == Visibility.PRIVATE.value, ~passes_gate(user, DocumentRow)
            ),
        )
    )
    return {row.id: row.title for row in rows}


def find_detail(session: Session, user: User, document_id: UUID) -> DocumentDetail | None:
    """Return a document with the facts about its searchable text, without the text itself."""
    summary = find_summary(session, user, document_id)
    if summary is None:
        return None
    row = session.execute(
        select(
            DocumentRow.sha256,
            DocumentRevisionRow.id,
            DocumentRevisionRow.extractor,
            DocumentRevisionRow.encoding,
            func.jsonb_array_length(DocumentRevisionRow.pages),
            DocumentRevisionRow.character_count,
        )
        .select_from(DocumentRow)
        .outerjoin(JobRow, JobRow.id == DocumentRow.current_job_id)
        .outerjoin(DocumentRevisionRow, DocumentRevisionRow.id == JobRow.revision_id)
        .where(DocumentRow.id == document_id)
    ).one()
    return DocumentDetail(
        summary=summary,
        sha256=row[0],
        revision_id=row[1],
        extractor=row[2],
        encoding=row[3],
        page_count=row[4] or 0,
        character_count=row[5] or 0,
    )


def find_duplicate(
    session: Session, *, owner_id: UUID, sha256: str, other_than: UUID | None = None
) -> UUID | None:
    """Return another document of the same owner with the same bytes. Pending new versions count;
    deleted and failed documents do not."""
    being_read = (
        select(JobRow.document_id)
        .join(StoredFileRow, StoredFileRow.id == JobRow.file_id)
        .where(
            StoredFileRow.sha256 == sha256,
            JobRow.status.in_([status.value for status in UNFINISHED]),
        )
    )
    live = (
        select(DocumentRow.id)
        .where(
            DocumentRow.owner_id == owner_id,
            DocumentRow.deleted_at.is_(None),
            DocumentRow.status != DocumentStatus.FAILED.value,
            DocumentRow.id.is_distinct_from(other_than),
        )
        .order_by(DocumentRow.created_at, DocumentRow.id)
        .limit(1)
    )
    # Two queries: joined by OR, neither condition would use its index.
    present = session.scalar(live.where(DocumentRow.sha256 == sha256))
    return present or session.scalar(live.where(DocumentRow.id.in_(being_read)))


def lock_content(session: Session, *, owner_id: UUID, sha256: str) -> None:
    """Lock a content, so that uploads of the same bytes by the same owner run one at a time."""
    session.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"{owner_id} {sha256}", 0)))
    )


def get_document(session: Session, document_id: UUID) -> DocumentRow | None:
    return session.get(DocumentRow, document_id)


def set_deleted(session: Session, document_id: UUID, *, deleted: bool) -> None:
    """Move a document to the trash, or restore it."""
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.id == document_id)
        .values(deleted_at=func.now() if deleted else None, updated_at=func.now())
    )


def is_deleted(session: Session, document_id: UUID) -> bool:
    return bool(session.scalar(select(DocumentRow.deleted_at).where(DocumentRow.id == document_id)))


def lock_document(session: Session, document_id: UUID) -> DocumentRow | None:
    """Return the row, locked until the transaction ends. Rows that refer to it may still be
    inserted: a large file can take long to store."""
    return session.scalar(
        select(DocumentRow).where(DocumentRow.id == document_id).with_for_update(key_share=True)
    )


def lock_documents_of(session: Session, owner_id: UUID) -> Sequence[DocumentRow]:
    """Lock a user's documents, including those in the trash, until the transaction ends."""
    return session.scalars(
        select(DocumentRow)
        .where(DocumentRow.owner_id == owner_id, DocumentRow.purged_at.is_(None))
        .order_by(DocumentRow.id)
        .with_for_update()
    ).all()


def count_documents_of(session: Session, owner_id: UUID) -> OwnedDocuments:
    """Count a user's documents, including those in the trash."""
    is_private = DocumentRow.visibility == Visibility.PRIVATE.value
    counts = select(
        func.count().filter(~is_private),
        func.count().filter(is_private),
        func.count(DocumentRow.deleted_at),
    ).where(DocumentRow.owner_id == owner_id, DocumentRow.purged_at.is_(None))
    return OwnedDocuments(*session.execute(counts).one())


def lock_for_purge(session: Session, document_id: UUID) -> None:
    """Lock a document until the transaction ends. Also keeps out new citations of it
    (`citations.hold_documents`)."""
    session.execute(select(DocumentRow.id).where(DocumentRow.id == document_id).with_for_update())


def set_status(
    session: Session, document: DocumentRow, status: DocumentStatus, failure: Failure | None = None
) -> None:
    document.status = status.value
    document.error = failure.as_json() if failure else None
    document.updated_at = func.now()
    session.flush()


def publish(session: Session, document: DocumentRow, job_id: UUID) -> None:
    """Make one ingestion the searchable one and delete the chunks of earlier ones."""
    document.current_job_id = job_id
    set_status(session, document, DocumentStatus.READY)
    chunks.delete_chunks(
        session, DocumentChunkRow.document_id == document.id, DocumentChunkRow.job_id != job_id
    )


def lock_expired(
    session: Session, *, before: datetime, other_than: Collection[UUID] = ()
) -> UUID | None:
    """Lock the document that has been in the trash longest, if it was deleted `before` a time. It
    stays locked until the transaction ends; documents locked by others are skipped."""
    return session.scalar(
        select(DocumentRow.id)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .where(
            CollectionRow.name == PORTAL_COLLECTION,
            DocumentRow.deleted_at < before,
            DocumentRow.purged_at.is_(None),
            DocumentRow.id.not_in(other_than),
        )
        .order_by(DocumentRow.deleted_at, DocumentRow.id)
        .limit(1)
        .with_for_update(of=DocumentRow, skip_locked=True)
    )


def purge(session: Session, document_id: UUID) -> None:
    """Delete text, chunks, vectors and files; keep title, hash and dates for old citations. Their
    quoted words must be removed first (portal.services.documents.erasing)."""
    files.delete_files_of(session, document_id)
    chunks.delete_chunks(session, DocumentChunkRow.document_id == document_id)
    session.execute(delete(JobRow).where(JobRow.document_id == document_id))
    session.execute(
        delete(DocumentRevisionRow).where(DocumentRevisionRow.document_id == document_id)
    )
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.id == document_id)
        # The tombstone: title, hash and dates.
        .values(
            purged_at=func.now(),
            current_job_id=None,
            error=None,
            file_name="",
            domain=None,
            tags=[],
        )
    )


def find_own(session: Session, owner_id: UUID, hashes: Collection[str]) -> list[tuple[UUID, bool]]:
    """Return a user's own documents with these files, and whether each is in the trash."""
    rows = session.execute(
        select(DocumentRow.id, DocumentRow.deleted_at.is_not(None))
        .where(
            DocumentRow.owner_id == owner_id,
            DocumentRow.sha256.in_(hashes),
            DocumentRow.purged_at.is_(None),
        )
        .order_by(DocumentRow.id)
    )
    return [(row[0], row[1]) for row in rows]


def list_news(
    session: Session, user: User, *, since: datetime, limit: int
) -> list[tuple[DocumentSummary, datetime, bool]]:
    """Return documents to which others uploaded the first or a new version, newest first, each with
    the time, and whether it is a new version."""
    # The first file of a document is stored in the transaction that adds it.
    is_version = StoredFileRow.created_at > DocumentRow.created_at
    rows = session.execute(
        shown_to(user)
        .join(JobRow, JobRow.id == DocumentRow.current_job_id)
        .join(StoredFileRow, StoredFileRow.id == JobRow.file_id)
        .where(
            StoredFileRow.created_at > since, StoredFileRow.uploaded_by.is_distinct_from(user.id)
        )
        .add_columns(StoredFileRow.created_at.label("at"), is_version.label("is_version"))
        .order_by(StoredFileRow.created_at.desc(), DocumentRow.id)
        .limit(limit)
    )
    return [(to_summary(row), row.at, row.is_version) for row in rows]
