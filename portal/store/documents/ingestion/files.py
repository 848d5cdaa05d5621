"""Original files, stored in the database in parts of one MiB."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    bindparam,
    delete,
    false,
    func,
    insert,
    select,
    union,
    update,
)
from sqlalchemy.orm import Session

from portal.domain.documents import MediaType
from portal.store.models import (
    DocumentRevisionRow,
    DocumentRow,
    JobRow,
    StoredFilePartRow,
    StoredFileRow,
)

PART_BYTES = 1024 * 1024

_PART = select(StoredFilePartRow.data).where(
    StoredFilePartRow.file_id == bindparam("file_id"),
    StoredFilePartRow.part_index == bindparam("part_index"),
)


def add_file(
    session: Session,
    stream: IO[bytes],
    *,
    file_name: str | None = None,
    media_type: MediaType | None = None,
    uploaded_by: UUID | None = None,
) -> UUID:
    """Store the rest of `stream` in parts; return the id of the file. Without a name and type the
    file uses those of its document."""
    file_id = uuid4()
    digest, size_bytes = hashlib.sha256(), 0
    # Parts refer to the file, so it is inserted first; hash and size are known only at the end.
    session.add(
        StoredFileRow(
            id=file_id,
            sha256="",
            size_bytes=0,
            file_name=file_name,
            media_type=media_type,
            uploaded_by=uploaded_by,
        )
    )
    session.flush()
    part_index = 0
    while part := stream.read(PART_BYTES):
        digest.update(part)
        size_bytes += len(part)
        session.execute(
            insert(StoredFilePartRow).values(file_id=file_id, part_index=part_index, data=part)
        )
        part_index += 1
    session.execute(
        update(StoredFileRow)
        .where(StoredFileRow.id == file_id)
        .values(sha256=digest.hexdigest(), size_bytes=size_bytes)
    )
    return file_id


@dataclass(frozen=True, slots=True)
class Original:
    """An uploaded file, without its bytes."""

    id: UUID
    file_name: str
    media_type: MediaType
    size_bytes: int
    sha256: str


def find_original(session: Session, document_id: UUID) -> Original | None:
    """Return the file of a document's searchable text, else the last uploaded one."""
    is_searched = func.coalesce(JobRow.id == DocumentRow.current_job_id, false())
    return find_newest_original(session, document_id, is_searched.desc())


def find_newest_original(
    session: Session, document_id: UUID, *first: ColumnElement[Any]
) -> Original | None:
    """Return the last uploaded file, whether or not it could be read; sort by `first` before the
    time of the upload."""
    row = session.execute(
        _originals()
        .where(JobRow.document_id == document_id)
        .order_by(*first, JobRow.created_at.desc(), JobRow.id)
        .limit(1)
    ).one_or_none()
    return _to_original(row) if row else None


def find_original_of_job(session: Session, job_id: UUID) -> Original | None:
    row = session.execute(_ORIGINAL_OF_JOB, {"job_id": job_id}).one_or_none()
    return _to_original(row) if row else None


def _originals() -> Select[Any]:
    statement: Any = (
        select(
            StoredFileRow.id,
            func.coalesce(StoredFileRow.file_name, DocumentRow.file_name),
            func.coalesce(StoredFileRow.media_type, DocumentRow.media_type),
            StoredFileRow.size_bytes,
            StoredFileRow.sha256,
        )
        .select_from(JobRow)
        .join(DocumentRow, DocumentRow.id == JobRow.document_id)
        .join(StoredFileRow, StoredFileRow.id == JobRow.file_id)
    )
    return cast("Select[Any]", statement)


_ORIGINAL_OF_JOB = _originals().where(JobRow.id == bindparam("job_id"))


def _to_original(row: Any) -> Original:
    file_id, file_name, media_type, size_bytes, sha256 = row
    return Original(file_id, file_name, MediaType(media_type), size_bytes, sha256)


def read_part(session: Session, file_id: UUID, part_index: int) -> bytes | None:
    """Return one part; None after the last one."""
    return session.scalar(_PART, {"file_id": file_id, "part_index": part_index})


def read_parts(session: Session, file_id: UUID) -> Iterator[bytes]:
    """Yield the file's bytes in order, one part in memory at a time."""
    part_index = 0
    while (data := read_part(session, file_id, part_index)) is not None:
        yield data
        part_index += 1


def lock_use(session: Session, owner_id: UUID) -> None:
    """Lock a user's storage, so that one transaction at a time counts and adds to it."""
    name = func.hashtextextended(f"originals of {owner_id}", 0)
    session.execute(select(func.pg_advisory_xact_lock(name)))


def used_bytes(session: Session, owner_id: UUID) -> int:
    """Return the total size of a user's original files, each counted once."""
    kept = _select_kept(DocumentRow.owner_id == owner_id)
    return int(session.scalar(select(func.coalesce(func.sum(kept.c.size_bytes), 0))) or 0)


def used_bytes_by_owner(session: Session) -> dict[UUID, int]:
    """Return `used_bytes` of every user who has any, by user id."""
    kept = _select_kept(DocumentRow.owner_id.is_not(None))
    rows = session.execute(
        select(kept.c.owner_id, func.sum(kept.c.size_bytes)).group_by(kept.c.owner_id)
    )
    return {owner_id: int(used) for owner_id, used in rows}


def _select_kept(of_documents: ColumnElement[bool]) -> Subquery:
    """Select the originals of documents, each once with its owner. Includes those of earlier
    versions and of documents in the trash."""
    columns = (DocumentRow.owner_id, StoredFileRow.id, StoredFileRow.size_bytes)
    branches = [
        select(*columns)
        .join(link, link.document_id == DocumentRow.id)
        .join(StoredFileRow, StoredFileRow.id == link.file_id)
        .where(of_documents)
        for link in (JobRow, DocumentRevisionRow)
    ]
    return union(*branches).subquery()


def delete_unused(session: Session, file_ids: Sequence[UUID]) -> None:
    """Delete the originals that no revision and no pending job uses."""
    of_job = select(JobRow.id).where(JobRow.file_id == StoredFileRow.id).exists()
    of_revision = (
        select(DocumentRevisionRow.id)
        .where(DocumentRevisionRow.file_id == StoredFileRow.id)
        .exists()
    )
    session.execute(
        delete(StoredFileRow).where(StoredFileRow.id.in_(file_ids), ~of_job, ~of_revision)
    )


def delete_files_of(session: Session, document_id: UUID) -> None:
    """Delete every original that a document ever had."""
    from_jobs = select(JobRow.file_id).where(JobRow.document_id == document_id)
    from_revisions = select(DocumentRevisionRow.file_id).where(
        DocumentRevisionRow.document_id == document_id
    )
    session.execute(
        delete(StoredFileRow).where(
            StoredFileRow.id.in_(from_jobs) | StoredFileRow.id.in_(from_revisions)
        )
    )
