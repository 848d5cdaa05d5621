"""Reasons why a document is not among the results of a search, looked up for one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from portal.domain.documents import DocumentSummary
from portal.domain.documents.selection import DocumentSwitch
from portal.domain.people import User
from portal.store.documents import rows, switches
from portal.store.models import ChunkEmbeddingRow, DocumentChunkRow, DocumentRow
from portal.store.search.filters.narrowing import Narrowing


@dataclass(frozen=True, slots=True)
class DocumentState:
    """The properties of a document that decide whether it is searched; `switch` is None in the
    trash."""

    summary: DocumentSummary
    has_text: bool
    switch: DocumentSwitch | None


def document_state(
    session: Session, user: User, document_id: UUID, *, conversation_id: UUID | None
) -> DocumentState | None:
    """Return the state of a document; None if it does not exist or the user may not see it.
    Documents in the trash are visible to users who may restore them."""
    summary = rows.find_summary(session, user, document_id)
    summary = summary or rows.find_summary(session, user, document_id, deleted=True)
    if summary is None:
        return None
    has_text = session.scalar(
        select(DocumentRow.current_job_id.is_not(None)).where(DocumentRow.id == document_id)
    )
    switch = switches.find_switch(session, user, conversation_id, document_id)
    return DocumentState(summary=summary, has_text=bool(has_text), switch=switch)


def passes(session: Session, document_id: UUID, narrowing: Narrowing) -> bool:
    """Return whether some chunk of a document satisfies all the conditions of a search."""
    statement = f"""
        SELECT EXISTS (
            SELECT FROM documents d
            JOIN document_chunks c ON c.job_id = d.current_job_id
            WHERE d.id = :document_id {narrowing.documents} {narrowing.chunks}
        )
    """
    binds = {"document_id": document_id, **narrowing.binds}
    return bool(session.scalar(text(statement), binds))


def is_embedded(session: Session, document_id: UUID, *, model_id: int) -> bool:
    """Return whether a model has a vector of any searchable chunk of a document."""
    return bool(
        session.scalar(
            select(
                select(ChunkEmbeddingRow.chunk_id)
                .join(DocumentRow, DocumentRow.current_job_id == ChunkEmbeddingRow.job_id)
                .where(DocumentRow.id == document_id, ChunkEmbeddingRow.model_id == model_id)
                .exists()
            )
        )
    )


def contents(session: Session, chunk_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the texts of chunks."""
    rows = session.execute(
        select(DocumentChunkRow.id, DocumentChunkRow.content).where(
            DocumentChunkRow.id.in_(chunk_ids)
        )
    )
    return {row.id: row.content for row in rows}


def contents_of(session: Session, document_id: UUID, *, limit: int) -> list[str]:
    """Return the texts of a document's searchable chunks, in reading order."""
    return list(
        session.scalars(
            select(DocumentChunkRow.content)
            .join(DocumentRow, DocumentRow.current_job_id == DocumentChunkRow.job_id)
            .where(DocumentRow.id == document_id)
            .order_by(DocumentChunkRow.chunk_index)
            .limit(limit)
        )
    )
