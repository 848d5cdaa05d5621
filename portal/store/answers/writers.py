"""The administrators' choice of the model that writes answers, and each model's failures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import null, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.documents import Failure
from portal.store.models import ChatSetupRow

_ONLY_ROW = 1

# A failure counts for the model that failed, even if the answer quotes the documents instead.
_USES = text(
    """
    SELECT COALESCE(retrieval #>> '{extra,failed_provider}', retrieval ->> 'chat_provider', '')
               AS provider,
           COALESCE(retrieval #>> '{extra,failed_model}', retrieval ->> 'chat_model', '') AS model,
           count(*) AS answers,
           count(*) FILTER (WHERE status = 'unavailable') AS failures
    FROM messages
    WHERE role = 'assistant' AND created_at > now() - interval '7 days'
    GROUP BY 1, 2
    ORDER BY answers DESC, 1, 2
    """
)
_FAILURES = text(
    """
    SELECT created_at,
           COALESCE(retrieval #>> '{extra,failed_model}', retrieval ->> 'chat_model', '') AS model,
           retrieval -> 'extra' -> 'failure' AS failure
    FROM messages
    WHERE role = 'assistant' AND status = 'unavailable'
      AND created_at > now() - interval '7 days'
    ORDER BY created_at DESC, id
    LIMIT 10
    """
)


@dataclass(frozen=True, slots=True)
class Use:
    """A model's use in the last seven days."""

    provider: str
    model: str
    answers: int
    failures: int


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """A failed answer, and the reason."""

    created_at: datetime
    model: str
    failure: Failure | None


def read_setup(session: Session) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the stored endpoint and writer."""
    row = session.execute(select(ChatSetupRow.endpoint, ChatSetupRow.writer)).one_or_none()
    return (row.endpoint, row.writer) if row else (None, None)


def write_setup(session: Session, **values: dict[str, Any] | None) -> None:
    """Store `endpoint`, `writer` or both."""
    columns = {name: null() if value is None else value for name, value in values.items()}
    statement = insert(ChatSetupRow).values(id=_ONLY_ROW, **columns)
    session.execute(statement.on_conflict_do_update(index_elements=[ChatSetupRow.id], set_=columns))


def list_uses(session: Session) -> list[Use]:
    """Return the models used in the last seven days, most used first."""
    return [Use(**row) for row in session.execute(_USES).mappings()]


def list_failures(session: Session) -> list[FailedAnswer]:
    """Return the ten latest failures of the last seven days."""
    return [
        FailedAnswer(row.created_at, row.model, Failure.stored(row.failure))
        for row in session.execute(_FAILURES)
    ]
