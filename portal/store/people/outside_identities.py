"""Accounts linked to the subjects of an external token issuer."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain import locks
from portal.store.models import OutsideIdentityRow, UserRow


def find_user(session: Session, *, issuer: str, subject: str) -> UserRow | None:
    """Return the account that is linked to a subject, enabled or not."""
    return session.scalar(
        select(UserRow)
        .join(OutsideIdentityRow, OutsideIdentityRow.user_id == UserRow.id)
        .where(OutsideIdentityRow.issuer == issuer, OutsideIdentityRow.subject == subject)
    )


def lock_subject(session: Session, *, issuer: str, subject: str) -> None:
    """Let one transaction at a time create the account of a subject."""
    key = func.hashtext(f"{issuer} {subject}")
    session.execute(select(func.pg_advisory_xact_lock(locks.OUTSIDE_SUBJECT, key)))


def link(session: Session, *, issuer: str, subject: str, user_id: UUID) -> None:
    """Link a subject to a user, in place of any other user."""
    statement = insert(OutsideIdentityRow).values(issuer=issuer, subject=subject, user_id=user_id)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=[OutsideIdentityRow.issuer, OutsideIdentityRow.subject],
            set_={"user_id": user_id},
        )
    )


def link_if_free(session: Session, *, issuer: str, subject: str, user_id: UUID) -> bool:
    """Link a subject to a user; return False if it belongs to another account."""
    statement = insert(OutsideIdentityRow).values(issuer=issuer, subject=subject, user_id=user_id)
    session.execute(statement.on_conflict_do_nothing())
    owner = select(OutsideIdentityRow.user_id).filter_by(issuer=issuer, subject=subject)
    return session.scalar(owner) == user_id


def list_identities(session: Session, user_id: UUID) -> list[OutsideIdentityRow]:
    """Return the identities that are linked to an account, oldest first."""
    row = OutsideIdentityRow
    linked = select(row).where(row.user_id == user_id).order_by(row.created_at, row.subject)
    return list(session.scalars(linked))


def unlink(session: Session, *, issuer: str, subject: str) -> bool:
    """Unlink a subject; return False if it was not linked."""
    removed = delete(OutsideIdentityRow).filter_by(issuer=issuer, subject=subject)
    return session.scalar(removed.returning(OutsideIdentityRow.user_id)) is not None
