"""Quotations of a document in answers, which a purge erases."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from portal.domain.answering import SentenceSupport
from portal.store.models import CitationRow, MessageRow


@dataclass(frozen=True, slots=True)
class Quotation:
    """An answer, and its quotations from one document."""

    message_id: UUID
    content: str
    support: tuple[SentenceSupport, ...]
    quotes: tuple[str, ...]


def lock_quotations(session: Session, document_id: UUID) -> list[Quotation]:
    """Lock the answers of all users that cite or consulted a document, until the transaction
    ends."""
    of_document = select(CitationRow.message_id).where(CitationRow.document_id == document_id)
    messages = session.execute(
        select(MessageRow.id, MessageRow.content, MessageRow.support)
        .where(MessageRow.id.in_(of_document))
        .order_by(MessageRow.id)
        .with_for_update(key_share=True)
    ).all()
    quotes: dict[UUID, list[str]] = {}
    for message_id, quote in session.execute(
        select(CitationRow.message_id, CitationRow.quote)
        .where(CitationRow.document_id == document_id)
        .order_by(CitationRow.message_id, CitationRow.marker)
    ):
        quotes.setdefault(message_id, []).append(quote)
    return [
        Quotation(
            message_id,
            content,
            tuple(map(SentenceSupport.from_json, support)),
            tuple(quotes.get(message_id, ())),
        )
        for message_id, content, support in messages
    ]


def erase_quotes(session: Session, document_id: UUID) -> None:
    """Erase the quotations from a purged document in answers, but keep the title, hash, place and
    dates of the citations."""
    session.execute(
        update(CitationRow)
        .where(CitationRow.document_id == document_id)
        .values(chunk_id=None, revision_id=None, quote="", heading=None)
    )
