"""Idempotency keys of requests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, null, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.store.models import IdempotencyKeyRow


def find(session: Session, *, user_id: UUID, key: str, life: timedelta) -> IdempotencyKeyRow | None:
    """Return a key that is younger than `life`."""
    return session.scalar(
        select(IdempotencyKeyRow).where(
            IdempotencyKeyRow.user_id == user_id,
            IdempotencyKeyRow.key == key,
            IdempotencyKeyRow.created_at >= func.now() - life,
        )
    )


def claim(session: Session, *, user_id: UUID, key: str, body_sha256: str) -> None:
    """Claim a key, without an answer yet. Replaces an expired key, and one whose process died
    before it answered."""
    values = {"body_sha256": body_sha256, "response": null(), "created_at": func.now()}
    session.execute(
        insert(IdempotencyKeyRow)
        .values(user_id=user_id, key=key, **values)
        .on_conflict_do_update(index_elements=["user_id", "key"], set_=values)
    )


def answer(session: Session, *, user_id: UUID, key: str, response: dict[str, Any]) -> None:
    session.execute(
        update(IdempotencyKeyRow).filter_by(user_id=user_id, key=key).values(response=response)
    )


def release(session: Session, *, user_id: UUID, key: str) -> None:
    session.execute(
        delete(IdempotencyKeyRow).where(
            IdempotencyKeyRow.user_id == user_id,
            IdempotencyKeyRow.key == key,
            IdempotencyKeyRow.response.is_(None),
        )
    )


def delete_expired(session: Session, *, life: timedelta) -> None:
    """Delete keys older than `life`."""
    born_before = func.now() - life
    session.execute(delete(IdempotencyKeyRow).where(IdempotencyKeyRow.created_at < born_before))
