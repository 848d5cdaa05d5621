"""Ownership of documents when an account is deleted."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from portal.store.models import DocumentRow


def lock_documents_of(session: Session, owner_id: UUID) -> list[DocumentRow]:
    """Read and lock a user's documents, those in the trash too; tombstones are left out."""
    return list(
        session.scalars(
            select(DocumentRow)
            .where(DocumentRow.owner_id == owner_id, DocumentRow.purged_at.is_(None))
            .order_by(DocumentRow.id)
            .with_for_update()
        )
    )


def transfer(session: Session, document_id: UUID, *, owner_id: UUID) -> None:
    session.execute(
        update(DocumentRow).where(DocumentRow.id == document_id).values(owner_id=owner_id)
    )
