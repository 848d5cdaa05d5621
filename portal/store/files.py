"""Originals, kept in the database in parts of a MiB."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import IO
from uuid import UUID, uuid4

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from portal.store.models import (
    DocumentRevisionRow,
    JobRow,
    StoredFilePartRow,
    StoredFileRow,
)

PART_BYTES = 1024 * 1024


def add_file(session: Session, stream: IO[bytes]) -> tuple[UUID, str, int]:
    """Store what `stream` still holds, a part at a time: (file id, sha256, size in bytes)."""
    file_id = uuid4()
    digest, size_bytes = hashlib.sha256(), 0
    # The parts refer to the file, so it comes first; hash and size are known only at the end.
    session.add(StoredFileRow(id=file_id, sha256="", size_bytes=0))
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
    return file_id, digest.hexdigest(), size_bytes


def read_part(session: Session, file_id: UUID, part_index: int) -> bytes | None:
    """One part, None past the last."""
    return session.scalar(
        select(StoredFilePartRow.data).where(
            StoredFilePartRow.file_id == file_id, StoredFilePartRow.part_index == part_index
        )
    )


def read_parts(session: Session, file_id: UUID) -> Iterator[bytes]:
    """The file's bytes in order, a part in memory at a time."""
    part_index = 0
    while (data := read_part(session, file_id, part_index)) is not None:
        yield data
        part_index += 1


def delete_files_of(session: Session, document_id: UUID) -> None:
    """Erase every original a document ever had."""
    from_jobs = select(JobRow.file_id).where(JobRow.document_id == document_id)
    from_revisions = select(DocumentRevisionRow.file_id).where(
        DocumentRevisionRow.document_id == document_id
    )
    session.execute(
        delete(StoredFileRow).where(
            StoredFileRow.id.in_(from_jobs) | StoredFileRow.id.in_(from_revisions)
        )
    )
