"""Copies of conversations, up to one of their messages."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, insert, literal, select
from sqlalchemy.orm import Session

from portal.store.models import (
    CitationRow,
    ConversationDocumentOverrideRow,
    ConversationRow,
    DocumentRow,
    FolderSwitchRow,
    MessageRow,
)

_CITATION_COLUMNS = tuple(
    column.name
    for column in CitationRow.__table__.columns
    if column.name not in {"id", "message_id"}
)
_SWITCHES = (
    (ConversationDocumentOverrideRow, "document_id"),
    (FolderSwitchRow, "folder_id"),
)


def copy_conversation(session: Session, conversation_id: UUID, *, until: MessageRow) -> UUID:
    """Copy a conversation up to a message, with its switches and scope; return the id of the copy.
    Superseded messages are not copied. Feedback stays with the original."""
    row = ConversationRow
    copy_id: UUID = session.scalars(
        insert(row)
        .from_select(
            ["user_id", "title", "scope"],
            select(row.user_id, row.title, row.scope).where(row.id == conversation_id),
        )
        .returning(row.id)
    ).one()
    for switches, name in _SWITCHES:
        key = getattr(switches, name)
        session.execute(
            insert(switches).from_select(
                ["conversation_id", name, "enabled"],
                select(literal(copy_id), key, switches.enabled).where(
                    switches.conversation_id == conversation_id
                ),
            )
        )
    message = MessageRow
    shown = (
        select(message.id)
        .where(
            message.conversation_id == conversation_id,
            message.superseded_at.is_(None),
            message.position <= until.position,
        )
        .order_by(message.position)
    )
    originals = list(session.scalars(shown))
    _hold_cited(session, originals)
    for original in originals:
        _copy_message(session, original, copy_id)
    return copy_id


def _hold_cited(session: Session, message_ids: list[UUID]) -> None:
    """Lock the cited documents, in the order of a purge, which then erases the copies as well."""
    cited = select(CitationRow.document_id).where(CitationRow.message_id.in_(message_ids))
    session.execute(
        select(DocumentRow.id)
        .where(DocumentRow.id.in_(cited))
        .order_by(DocumentRow.id)
        .with_for_update(read=True, key_share=True)
    )


def _copy_message(session: Session, original: UUID, conversation_id: UUID) -> None:
    row, cited = MessageRow, CitationRow
    columns = (row.role, row.content, row.status, row.retrieval, row.scope, row.support)
    copy_id = session.scalar(
        insert(row)
        .from_select(
            ["conversation_id", *(column.key for column in columns), "created_at", "updated_at"],
            select(literal(conversation_id), *columns, row.created_at, row.updated_at).where(
                row.id == original
            ),
        )
        .returning(row.id)
    )
    session.execute(
        insert(cited).from_select(
            ["id", "message_id", *_CITATION_COLUMNS],
            select(
                func.gen_random_uuid(),
                literal(copy_id),
                *(getattr(cited, name) for name in _CITATION_COLUMNS),
            ).where(cited.message_id == original),
        )
    )
