"""What a search needs to know before it begins, in one reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.store.embedding_models import RegisteredModel, registered
from portal.store.keyword_index import STATE_COLUMNS, KeywordState, state_of

_CONTEXT = text(
    f"""
    SELECT m.*, {STATE_COLUMNS},
           (SELECT jsonb_object_agg(key, value) FROM dynamic_config) AS config,
           EXISTS (SELECT FROM conversations
                   WHERE id = :conversation_id AND user_id = :person_id) AS has_conversation
    FROM collections
    LEFT JOIN embedding_models m ON m.id = collections.embedding_model_id
    WHERE collections.name = 'portal'
    """
)


@dataclass(frozen=True, slots=True)
class SearchContext:
    """`config` are stored values of `dynamic_config`; `model` is the one that serves, None before
    the first is registered; `has_conversation` when the conversation is the person's own."""

    config: dict[str, Any]
    keywords: KeywordState
    model: RegisteredModel | None
    has_conversation: bool


def read_context(
    session: Session, person_id: UUID, conversation_id: UUID | None, *, keyword_backend: str
) -> SearchContext:
    """What is in force right now; nothing of it may be kept for the next search."""
    row = session.execute(
        _CONTEXT, {"person_id": person_id, "conversation_id": conversation_id}
    ).one()
    return SearchContext(
        config=row.config or {},
        keywords=state_of(session, row, wanted=keyword_backend),
        model=None if row.id is None else registered(row),
        has_conversation=row.has_conversation,
    )
