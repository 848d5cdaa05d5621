"""Users' ratings of answers, for evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

# An answer's question is the last one before it that existed when it was written.
_JUDGED = text(
    """
    SELECT a.feedback = 'useful' AS is_useful, a.status,
           COALESCE(a.retrieval ->> 'chat_provider', '') AS provider,
           COALESCE(a.retrieval ->> 'chat_model', '') AS model,
           (SELECT q.content FROM messages q
            WHERE q.conversation_id = a.conversation_id AND q.role = 'user'
              AND q.position < a.position
            ORDER BY q.position DESC LIMIT 1) AS question,
           best.confidence, COALESCE(best.document_ids, '{}') AS document_ids
    FROM messages a
    LEFT JOIN LATERAL (
        SELECT max(c.confidence) AS confidence,
               array_agg(CAST(c.document_id AS text) ORDER BY c.marker)
                   FILTER (WHERE c.was_cited AND c.document_id IS NOT NULL) AS document_ids
        FROM citations c WHERE c.message_id = a.id
    ) best ON true
    WHERE a.role = 'assistant' AND a.feedback IS NOT NULL
    ORDER BY a.position
    """
)


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A rated answer. `confidence` is that of its best source, None without any; `document_ids` are
    its citations, by marker."""

    is_useful: bool
    status: str
    provider: str
    model: str
    question: str
    confidence: float | None
    document_ids: tuple[str, ...]


def list_judged(session: Session) -> list[JudgedAnswer]:
    """Return every rated answer of all users, by when it was asked for."""
    return [
        JudgedAnswer(**dict(row) | {"document_ids": tuple(row["document_ids"])})
        for row in session.execute(_JUDGED).mappings()
    ]
