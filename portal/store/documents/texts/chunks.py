"""Chunks and revisions: storing an ingestion, and reading chunks back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    cast,
    delete,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONPATH
from sqlalchemy.orm import Session

from portal.domain.documents import Chunk, ExtractedText, Heading, Page, StoredChunk
from portal.domain.documents.revisions import MAX_NUMBER
from portal.domain.documents.structure import Block
from portal.domain.embedding import Vector
from portal.store.documents import vocabulary
from portal.store.documents.outlines import label_of_chunk, outlines
from portal.store.models import (
    ChunkEmbeddingRow,
    DocumentChunkRow,
    DocumentRevisionRow,
    DocumentRow,
    JobRow,
)
from portal.text.layout.outlines import Outline


def add_revision(
    session: Session, *, document_id: UUID, file_id: UUID | None, extracted: ExtractedText,
    sha256: str, reader_version: int,
) -> UUID:  # fmt: skip
    """Insert an extracted text as an immutable revision and return its id."""
    row = DocumentRevisionRow(
        document_id=document_id,
        revision_number=_next_number(document_id),
        file_id=file_id,
        body=extracted.text,
        sha256=sha256,
        extractor=extracted.extractor,
        encoding=extracted.encoding,
        character_count=len(extracted.text),
        pages=[[p.number, p.start, p.end, p.label] for p in extracted.pages],
        headings=[[h.level, h.title, h.start] for h in extracted.headings],
        blocks=[block.as_json() for block in extracted.blocks],
        reader_version=reader_version,
        warnings=[warning.as_json() for warning in extracted.warnings],
    )
    session.add(row)
    session.flush()
    return row.id


def _next_number(document_id: UUID) -> ScalarSelect[int]:
    numbers = select(func.coalesce(func.max(DocumentRevisionRow.revision_number), 0) + 1)
    return numbers.where(DocumentRevisionRow.document_id == document_id).scalar_subquery()


def get_revision(session: Session, revision_id: UUID) -> DocumentRevisionRow | None:
    return session.get(DocumentRevisionRow, revision_id)


def stored_indexes(session: Session, job_id: UUID) -> set[int]:
    """Return the indexes of a job's stored chunks; an interrupted ingestion resumes after them."""
    stored = select(DocumentChunkRow.chunk_index).where(DocumentChunkRow.job_id == job_id)
    return set(session.scalars(stored))


def add_chunks(session: Session, rows: Sequence[dict[str, Any]]) -> list[UUID]:
    """Insert chunks (column names to values); return ids in the same order."""
    # Generated here: ids from the server come back one by one, a round trip each.
    ids = [uuid4() for _ in rows]
    named = [{"id": id_, **row} for id_, row in zip(ids, rows, strict=True)]
    session.execute(insert(DocumentChunkRow), named)
    return ids


def delete_chunks(session: Session, *which: ColumnElement[bool]) -> int:
    """Delete the chunks that meet all conditions, and words that no other chunk has. Return the
    number of deleted chunks."""
    gone = delete(DocumentChunkRow).where(*which).returning(DocumentChunkRow.terms_vector).cte()
    # Distinct on the server: a long document has a million terms, of which few differ.
    each = select(func.unnest(func.tsvector_to_array(gone.c.terms_vector))).distinct()
    count = select(func.count()).select_from(gone).scalar_subquery()
    deleted, terms = session.execute(select(count, func.array(each.scalar_subquery()))).one()
    vocabulary.delete_unused(session, terms)
    return int(deleted)


def add_embeddings(
    session: Session,
    *,
    model_id: int,
    document_id: UUID,
    job_id: UUID,
    chunk_ids: Sequence[UUID],
    vectors: Vector,
) -> None:
    """Store vectors (len(chunk_ids), dimensions) of chunks."""
    session.execute(
        insert(ChunkEmbeddingRow),
        [
            {
                "model_id": model_id,
                "chunk_id": chunk_id,
                "document_id": document_id,
                "job_id": job_id,
                "embedding": vector,
            }
            for chunk_id, vector in zip(chunk_ids, vectors, strict=True)
        ],
    )


def _to_stored(
    row: DocumentChunkRow, label: str | None, touched: Outline | None = None
) -> StoredChunk:
    return StoredChunk(
        id=row.id,
        chunk=Chunk(
            index=row.chunk_index,
            content=row.content,
            char_start=row.char_start,
            char_end=row.char_end,
            page=row.page,
            heading=row.heading,
            context=row.context,
            blocks=tuple(map(Block.from_json, row.blocks)),
            page_label=label,
            ends_on=touched.last_page(row.char_end) if touched and row.char_end else None,
        ),
    )


def _count(chunks: Select[DocumentChunkRow, str | None]) -> Select[int]:
    return select(func.count()).select_from(
        chunks.with_only_columns(DocumentChunkRow.id).subquery()
    )


_PAGE_LABEL: ColumnElement[str | None] = literal_column(label_of_chunk("document_chunks"))


def _searchable(document_id: UUID) -> Select[DocumentChunkRow, str | None]:
    return (
        select(DocumentChunkRow, _PAGE_LABEL)
        .join(DocumentRow, DocumentRow.current_job_id == DocumentChunkRow.job_id)
        .where(DocumentRow.id == document_id)
    )


def list_chunks(
    session: Session, document_id: UUID, *, limit: int, offset: int
) -> tuple[tuple[StoredChunk, ...], int]:
    """Return chunks of a document's searchable text in reading order, and their total number. Each
    has the page on which it ends."""
    of_document = _searchable(document_id)
    total = session.scalar(_count(of_document)) or 0
    rows = session.execute(
        of_document.order_by(DocumentChunkRow.chunk_index).limit(limit).offset(offset)
    ).all()
    touched = outlines(session, [row.id for row, _ in rows if row.page is not None])
    return tuple(_to_stored(*row, touched.get(row[0].id)) for row in rows), total


def find_chunk(session: Session, document_id: UUID, chunk_id: UUID) -> StoredChunk | None:
    """Return one chunk of a document's searchable text."""
    return _one(session, _searchable(document_id).where(DocumentChunkRow.id == chunk_id))


def count_before(session: Session, document_id: UUID, index: int) -> int:
    """Return how many chunks of a document's searchable text have a lower index."""
    before = _searchable(document_id).where(DocumentChunkRow.chunk_index < index)
    return session.scalar(_count(before)) or 0


def find_chunk_at(session: Session, document_id: UUID, position: int) -> StoredChunk | None:
    """Return the chunk of a document's searchable text that contains character `position`, or else
    the first chunk after it."""
    return _one(
        session,
        _searchable(document_id)
        .where(DocumentChunkRow.char_end > position)
        .order_by(DocumentChunkRow.chunk_index)
        .limit(1),
    )


def _one(session: Session, statement: Select[DocumentChunkRow, str | None]) -> StoredChunk | None:
    row = session.execute(statement).one_or_none()
    return _to_stored(*row) if row else None


def stretch_of_body(start: int, end: int | None) -> ColumnElement[str]:
    """Return SQL for the text of a revision, or for characters `start` to `end` of it."""
    body: ColumnElement[str] = DocumentRevisionRow.body.expression
    if not start and end is None:
        return body
    # substr counts from 1, and in characters, as these ranges do.
    length = MAX_NUMBER - start if end is None else max(0, end - start)
    return func.substr(body, start + 1, length)


def _of_current_revision(document_id: UUID, *columns: Any) -> Select[Any]:
    """Select columns of the revision that is a document's searchable text."""
    return (
        select(*columns)
        .join(JobRow, JobRow.revision_id == DocumentRevisionRow.id)
        .join(DocumentRow, DocumentRow.current_job_id == JobRow.id)
        .where(DocumentRow.id == document_id)
    )


def list_headings(session: Session, document_id: UUID, *, limit: int) -> list[Heading]:
    """Return the first headings of a document's searchable text, in order."""
    first = cast(f"$[0 to {limit - 1}]", JSONPATH)
    headings = func.jsonb_path_query_array(DocumentRevisionRow.headings, first)
    stored = session.scalar(_of_current_revision(document_id, headings))
    return [Heading(*heading) for heading in stored or ()]


def list_pages(session: Session, document_id: UUID) -> list[Page]:
    """Return the pages of a document's searchable text, in order."""
    stored = session.scalar(_of_current_revision(document_id, DocumentRevisionRow.pages))
    return [Page(*page) for page in stored or ()]


def read_text(
    session: Session, document_id: UUID, *, start: int, end: int | None
) -> tuple[UUID, str] | None:
    """Return the revision id and searchable text of a document, or characters `start` to `end`."""
    columns = (DocumentRevisionRow.id, stretch_of_body(start, end))
    row = session.execute(_of_current_revision(document_id, *columns)).one_or_none()
    return (row[0], row[1]) if row else None
