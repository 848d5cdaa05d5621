"""Keys of requests that may be repeated."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.store.models import IdempotencyKeyRow


def find(session: Session, *, user_id: UUID, key: str) -> IdempotencyKeyRow | None:
    return session.get(IdempotencyKeyRow, (user_id, key))


def claim(session: Session, *, user_id: UUID, key: str, body_sha256: str) -> None:
    """Take a key that nobody answers under, also one whose process died before it answered."""
    session.execute(
        insert(IdempotencyKeyRow)
        .values(user_id=user_id, key=key, body_sha256=body_sha256)
        .on_conflict_do_nothing()
    )


def answer(session: Session, *, user_id: UUID, key: str, response: dict[str, Any]) -> None:
    session.execute(
        update(IdempotencyKeyRow)
        .where(IdempotencyKeyRow.user_id == user_id, IdempotencyKeyRow.key == key)
        .values(response=response)
    )


def release(session: Session, *, user_id: UUID, key: str) -> None:
    session.execute(
        delete(IdempotencyKeyRow).where(
            IdempotencyKeyRow.user_id == user_id,
            IdempotencyKeyRow.key == key,
            IdempotencyKeyRow.response.is_(None),
        )
    )


def forget(session: Session, *, older_than: timedelta) -> None:
    """Drop keys past their life."""
    age = func.now() - IdempotencyKeyRow.created_at
    session.execute(delete(IdempotencyKeyRow).where(age > older_than))
