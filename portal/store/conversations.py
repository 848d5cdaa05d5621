"""Conversations: whose they are."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from portal.store.models import ConversationRow


def belongs_to(session: Session, conversation_id: UUID, user_id: UUID) -> bool:
    return bool(
        session.scalar(
            select(
                exists().where(
                    ConversationRow.id == conversation_id, ConversationRow.user_id == user_id
                )
            )
        )
    )
