"""Citations of answers, as stored with the answer, and the current state of their documents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID, uuid5

from sqlalchemy import ColumnElement, Select, and_, delete, func, literal, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from portal.domain.answering import Source
from portal.domain.conversations import Citation, CitedIn, SourceState
from portal.domain.documents.structure import LaidOutText
from portal.domain.people import User
from portal.domain.search import SearchMode
from portal.store.answers.conversations import of_user
from portal.store.documents.outlines import outlines, page_label
from portal.store.documents.selection import listed_for, visible_to
from portal.store.documents.texts.layouts import blocks_in, headings_in, laid_out
from portal.store.models import (
    CitationRow,
    ConversationRow,
    DocumentChunkRow,
    DocumentRevisionRow,
    DocumentRow,
    JobRow,
    MessageRow,
)
from portal.text.layout.outlines import Outline, Place


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A chunk to be stored with an answer, under the number that the reader sees. `start` and `end`
    are the quoted characters of the chunk's own text."""

    marker: int
    source: Source
    was_cited: bool
    start: int
    end: int

    @property
    def quote(self) -> str:
        return self.source.text[self.start : self.end]


def sha256_of(quote: str) -> str:
    return hashlib.sha256(quote.encode()).hexdigest()


def hold_documents(session: Session, cited: Sequence[CitedSource]) -> Mapping[UUID, bool]:
    """Lock documents, and return for each that exists whether it still has its text. Waits for a
    purge in progress, and a new one waits for the citations, which it then erases. Call it before
    locking the answer itself, in the lock order of a purge."""
    query = _cited_documents(cited).order_by(DocumentRow.id)
    rows = session.execute(query.with_for_update(read=True, key_share=True))
    return {document_id: purged_at is None for document_id, purged_at in rows}


def find_alive(session: Session, cited: Sequence[CitedSource]) -> Mapping[UUID, bool]:
    """Return for each document that exists whether it still has its text, without locking it."""
    rows = session.execute(_cited_documents(cited))
    return {document_id: purged_at is None for document_id, purged_at in rows}


def _cited_documents(cited: Sequence[CitedSource]) -> Select[UUID, datetime | None]:
    ids = {one.source.document_id for one in cited}
    return select(DocumentRow.id, DocumentRow.purged_at).where(DocumentRow.id.in_(ids))


def replace_citations(
    session: Session, message_id: UUID, cited: Sequence[CitedSource], alive: Mapping[UUID, bool]
) -> None:
    """Replace the stored citations of an answer. No text of documents that are not `alive` is
    stored."""
    session.execute(delete(CitationRow).where(CitationRow.message_id == message_id))
    touched = outlines(session, [one.source.chunk_id for one in cited])
    session.add_all(
        _to_row(message_id, one, alive, touched.get(one.source.chunk_id, Outline()))
        for one in cited
    )
    session.flush()


def _to_row(
    message_id: UUID, cited: CitedSource, alive: Mapping[UUID, bool], touched: Outline
) -> CitationRow:
    source = cited.source
    # The pages and sections of the quotation itself: its chunk may have begun earlier.
    beginning = Place(source.page, source.page_label, source.heading)
    place = touched.place(source.char_start + cited.start, beginning)
    has_text = alive.get(source.document_id, False)
    return CitationRow(
        # Stays the same while the answer is written, whichever marker it gets in the end.
        id=uuid5(message_id, f"{source.chunk_id} {source.number}"),
        message_id=message_id,
        marker=cited.marker,
        document_id=source.document_id if source.document_id in alive else None,
        revision_id=source.revision_id if has_text else None,
        chunk_id=source.chunk_id if has_text else None,
        title=source.title,
        char_start=source.char_start + cited.start,
        char_end=source.char_start + cited.end,
        quote=cited.quote if has_text else "",
        quote_sha256=sha256_of(cited.quote),
        page=place.page,
        heading=place.heading if has_text else None,
        scores={
            "score": source.score,
            "vector_score": source.vector_score,
            "text_score": source.text_score,
            "low_confidence": source.low_confidence,
            "source": source.found_by.value,
        },
        confidence=source.confidence,
        was_cited=cited.was_cited,
    )


# --- reading --------------------------------------------------------------------------------------

_Cited, _Current = aliased(DocumentRevisionRow, name="cited"), aliased(DocumentRevisionRow)
# Whether the cited chunk is still searchable.
_CHUNK_STANDS = (
    select(DocumentChunkRow.id)
    .where(
        DocumentChunkRow.id == CitationRow.chunk_id,
        DocumentChunkRow.job_id == DocumentRow.current_job_id,
    )
    .correlate(CitationRow, DocumentRow)
    .exists()
    .label("chunk_stands")
)
_PAGE_LABEL: ColumnElement[str | None] = literal_column(
    page_label("cited.pages", "citations.page")
).label("page_label")


def _with_state(user: User) -> Select[Any]:
    """Select citations with the current state of their documents for this user."""
    statement: Any = (
        select(
            CitationRow,
            DocumentRow.purged_at,
            DocumentRow.deleted_at,
            func.coalesce(visible_to(user), False).label("is_visible"),
            func.coalesce(listed_for(user, deleted=True), False).label("can_restore"),
            _Cited.sha256.label("cited_sha256"),
            _Current.sha256.label("current_sha256"),
            _CHUNK_STANDS,
            _PAGE_LABEL,
        )
        .outerjoin(DocumentRow, DocumentRow.id == CitationRow.document_id)
        .outerjoin(JobRow, JobRow.id == DocumentRow.current_job_id)
        .outerjoin(_Current, _Current.id == JobRow.revision_id)
        .outerjoin(_Cited, _Cited.id == CitationRow.revision_id)
    )
    return cast("Select[Any]", statement)


def of_messages(
    session: Session, user: User, message_ids: Sequence[UUID]
) -> dict[UUID, tuple[Citation, ...]]:
    """Return the citations of these messages in the order of their markers: cited first, then
    consulted."""
    rows = session.execute(
        _with_state(user)
        .where(CitationRow.message_id.in_(message_ids))
        .order_by(CitationRow.message_id, CitationRow.marker)
    )
    found: dict[UUID, list[Citation]] = {}
    for row in rows:
        found.setdefault(row.CitationRow.message_id, []).append(_to_citation(row))
    return {message_id: tuple(citations) for message_id, citations in found.items()}


def find_citation(session: Session, user: User, citation_id: UUID) -> Citation | None:
    """Return a citation in one of a user's own conversations."""
    row = session.execute(
        _with_state(user)
        .join(MessageRow, MessageRow.id == CitationRow.message_id)
        .join(ConversationRow, ConversationRow.id == MessageRow.conversation_id)
        .where(CitationRow.id == citation_id, of_user(user.id))
    ).one_or_none()
    return _to_citation(row) if row else None


def of_document(
    session: Session, user: User, document_id: UUID, *, limit: int
) -> tuple[list[CitedIn], int]:
    """Return the newest citations of a document in a user's own conversations, and their total
    number. Answers that were replaced do not count."""
    rows = session.execute(
        _with_state(user)
        .add_columns(ConversationRow.id, ConversationRow.title, func.count().over().label("total"))
        .join(MessageRow, MessageRow.id == CitationRow.message_id)
        .join(ConversationRow, ConversationRow.id == MessageRow.conversation_id)
        .where(
            CitationRow.document_id == document_id,
            CitationRow.was_cited,
            MessageRow.superseded_at.is_(None),
            of_user(user.id),
        )
        .order_by(CitationRow.created_at.desc(), CitationRow.id)
        .limit(limit)
    ).all()
    found = [CitedIn(_to_citation(row), row.id, row.title) for row in rows]
    return found, rows[0].total if rows else 0


def _state(row: Any) -> SourceState:
    if row.CitationRow.document_id is None or row.purged_at is not None or not row.is_visible:
        return SourceState.GONE
    if row.deleted_at is not None:
        return SourceState.TRASHED
    if row.CitationRow.revision_id is None:
        # A chunk that a program added does not change until it is deleted.
        is_current = row.chunk_stands
    else:
        # A new ingestion of the very same text does not change the citation.
        is_current = row.cited_sha256 == row.current_sha256
    return SourceState.CURRENT if is_current else SourceState.REPLACED


def _to_citation(row: Any) -> Citation:
    stored, state = row.CitationRow, _state(row)
    # The quotation is hidden from a user who may no longer see the document.
    is_gone = state is SourceState.GONE
    scores = stored.scores
    return Citation(
        id=stored.id,
        marker=stored.marker,
        document_id=None if is_gone else stored.document_id,
        revision_id=None if is_gone else stored.revision_id,
        chunk_id=None if is_gone else stored.chunk_id,
        title=stored.title,
        excerpt="" if is_gone else stored.quote,
        quote_sha256=stored.quote_sha256,
        char_start=stored.char_start,
        char_end=stored.char_end,
        page=stored.page,
        page_label=None if is_gone else row.page_label,
        heading=None if is_gone else stored.heading,
        score=scores["score"],
        vector_score=scores["vector_score"],
        text_score=scores["text_score"],
        confidence=stored.confidence,
        low_confidence=scores["low_confidence"],
        source=SearchMode(scores["source"]),
        was_cited=stored.was_cited,
        state=state,
        can_open=state in {SourceState.CURRENT, SourceState.REPLACED},
        can_restore=row.can_restore,
        cited_at=stored.created_at,
        gone_at=row.purged_at if row.is_visible else None,
    )


@dataclass(frozen=True, slots=True)
class _QuotedFrom:
    """The text that a quotation was taken from, its structure and length, and the condition that
    finds it."""

    text: ColumnElement[str]
    blocks: InstrumentedAttribute[list[Any]]
    headings: InstrumentedAttribute[list[Any]] | None
    length: ColumnElement[int]
    is_this: ColumnElement[bool]


def _quoted_from(citation: Citation) -> _QuotedFrom:
    """Select a revision, or a chunk that a program added."""
    if citation.revision_id is not None:
        revision = DocumentRevisionRow
        return _QuotedFrom(
            revision.body.expression,
            revision.blocks,
            revision.headings,
            revision.character_count.expression,
            revision.id == citation.revision_id,
        )
    chunk = DocumentChunkRow
    is_this = and_(chunk.id == citation.chunk_id, chunk.char_start.is_(None))
    length = func.char_length(chunk.content)
    return _QuotedFrom(chunk.content.expression, chunk.blocks, None, length, is_this)


def hash_in_source(session: Session, citation: Citation) -> str | None:
    """Return the SHA-256 of the current text at the place of the quotation, in its revision or in
    the chunk that a program added; None if that no longer exists."""
    start, length = citation.char_start + 1, citation.char_end - citation.char_start
    source = _quoted_from(citation)
    quote = session.scalar(select(func.substr(source.text, start, length)).where(source.is_this))
    return None if quote is None else sha256_of(quote)


def read_around(
    session: Session, citation: Citation, around: int
) -> tuple[LaidOutText, int] | None:
    """Return the quotation with at most `around` characters of its source before and after it, and
    the length of the whole source; None if that no longer exists."""
    first, end = max(0, citation.char_start - around), citation.char_end + around
    source = _quoted_from(citation)
    headings = source.headings
    row = session.execute(
        select(
            func.substr(source.text, first + 1, end - first),
            blocks_in(source.blocks, first, end),
            literal([], JSONB) if headings is None else headings_in(headings, first, end),
            source.length,
        ).where(source.is_this)
    ).one_or_none()
    return None if row is None else (laid_out(row[0], first, row[1], row[2]), row[3])
