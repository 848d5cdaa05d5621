"""Links by which a user sets a new password: at most one for each user."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from portal.store.models import PasswordResetRow, UserRow


def replace(session: Session, *, user_id: UUID, secret_sha256: bytes, expires_at: datetime) -> None:
    """Add a link, in place of an earlier one for the same user."""
    delete_for_user(session, user_id)
    session.add(
        PasswordResetRow(user_id=user_id, secret_sha256=secret_sha256, expires_at=expires_at)
    )
    session.flush()


def find_user(session: Session, *, secret_sha256: bytes) -> UserRow | None:
    """Return the user that an open link is for."""
    return session.scalar(
        select(UserRow)
        .join(PasswordResetRow, PasswordResetRow.user_id == UserRow.id)
        .where(
            PasswordResetRow.secret_sha256 == secret_sha256,
            PasswordResetRow.expires_at > func.now(),
        )
    )


def use(session: Session, *, secret_sha256: bytes) -> bool:
    """Remove a link; return whether it was there."""
    used = delete(PasswordResetRow).where(PasswordResetRow.secret_sha256 == secret_sha256)
    return session.scalar(used.returning(PasswordResetRow.user_id)) is not None


def delete_for_user(session: Session, user_id: UUID) -> None:
    session.execute(delete(PasswordResetRow).where(PasswordResetRow.user_id == user_id))
