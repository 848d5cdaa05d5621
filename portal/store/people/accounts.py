"""Users, invitations and password resets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import case, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from portal.domain.people import User
from portal.errors import NameLooksTaken, NameTaken, NoSuchAccount
from portal.store.models import InvitationRow, UserRow
from portal.text.characters.look_alikes import skeleton

VISIT_GAP = timedelta(minutes=30)
"""After this long without a request, the next one begins another visit."""
_OPEN = (InvitationRow.used_at.is_(None), InvitationRow.expires_at > func.now())


def add_user(session: Session, *, name: str, password_hash: str | None, is_admin: bool) -> UserRow:
    """Create an account; without a hash it has no password. Raises NameTaken, also for a name that
    differs only in case or in characters that look alike."""
    row = UserRow(
        name=name, name_skeleton=skeleton(name), password_hash=password_hash, is_admin=is_admin
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        if find_user_by_name(session, name) is None:
            raise NameLooksTaken(name=name) from error
        raise NameTaken(name=name) from error
    return row


def find_user_by_name(session: Session, name: str) -> UserRow | None:
    return session.scalar(select(UserRow).where(func.lower(UserRow.name) == func.lower(name)))


def get_user_by_name(session: Session, name: str) -> UserRow:
    """Return a user by name, ignoring case. Raises NoSuchAccount."""
    row = find_user_by_name(session, name)
    if row is None:
        raise NoSuchAccount(name=name)
    return row


def get_user(session: Session, user_id: UUID) -> UserRow | None:
    return session.get(UserRow, user_id)


def with_current_rights(session: Session, user: User) -> User | None:
    """Return a user as the account is now; None if it is disabled or gone. The user gains no
    rights: with a token without `admin`, an administrator stays an ordinary user."""
    row = session.get(UserRow, user.id)
    if row is None or row.disabled_at is not None:
        return None
    return replace(to_user(row), is_admin=user.is_admin and row.is_admin)


def lock_user(session: Session, user_id: UUID) -> UserRow | None:
    """Read a user, locked against other changes of the row until the transaction ends."""
    return session.get(
        UserRow, user_id, with_for_update={"key_share": True}, populate_existing=True
    )


def lock_for_deletion(session: Session, user_id: UUID) -> UserRow | None:
    """Read a user, locked also against new references to the row until the transaction ends. All
    administrators are locked first, in one order, so that two deletions do not block each other."""
    lock_active_admins(session)
    return session.get(UserRow, user_id, with_for_update=True, populate_existing=True)


def first_active_admin(session: Session, *, other_than: UUID | None = None) -> UserRow | None:
    """Return the longest-standing administrator who can sign in."""
    return session.scalar(
        select(UserRow)
        .where(
            UserRow.is_admin, UserRow.disabled_at.is_(None), UserRow.id.is_distinct_from(other_than)
        )
        .order_by(UserRow.created_at, UserRow.id)
        .limit(1)
    )


def delete_user(session: Session, user_id: UUID) -> None:
    """Delete an account with everything that is its own: tokens, conversations, settings."""
    session.execute(delete(UserRow).where(UserRow.id == user_id))


def list_users(session: Session) -> list[UserRow]:
    return list(session.scalars(select(UserRow).order_by(func.lower(UserRow.name), UserRow.id)))


def has_users(session: Session) -> bool:
    return session.scalar(select(UserRow.id).limit(1)) is not None


def lock_active_admins(session: Session) -> Sequence[UserRow]:
    """Return the administrators who can sign in, locked, so that no two leave or lose the role at
    once."""
    active = select(UserRow).where(UserRow.is_admin, UserRow.disabled_at.is_(None))
    return session.scalars(active.order_by(UserRow.id).with_for_update()).all()


def note_visit(session: Session, user_id: UUID) -> None:
    """Record that a user is active. When a new visit begins, keep the end of the previous one."""
    is_new_visit = UserRow.visited_at < func.now() - VISIT_GAP
    session.execute(
        update(UserRow)
        .where(UserRow.id == user_id)
        .values(
            visited_at=func.now(),
            previous_visit_at=case(
                (is_new_visit, UserRow.visited_at), else_=UserRow.previous_visit_at
            ),
        )
    )


def to_user(row: UserRow) -> User:
    return User(
        id=row.id,
        name=row.name,
        is_admin=row.is_admin,
        language=row.language,
        preferred_domain=row.preferred_domain,
    )


def add_invitation(
    session: Session, *, secret_sha256: bytes, created_by: UUID, expires_at: datetime
) -> InvitationRow:
    row = InvitationRow(secret_sha256=secret_sha256, created_by=created_by, expires_at=expires_at)
    session.add(row)
    session.flush()
    return row


def find_open_invitation(session: Session, *, secret_sha256: bytes) -> InvitationRow | None:
    """Return an invitation that is neither used nor expired."""
    return session.scalar(
        select(InvitationRow).where(InvitationRow.secret_sha256 == secret_sha256, *_OPEN)
    )


def use_invitation(session: Session, *, secret_sha256: bytes) -> UUID | None:
    """Mark an open invitation as used and return its id; None if it is no longer open."""
    return session.scalar(
        update(InvitationRow)
        .where(InvitationRow.secret_sha256 == secret_sha256, *_OPEN)
        .values(used_at=func.now())
        .returning(InvitationRow.id)
    )


def delete_open_invitation(session: Session, invitation_id: UUID) -> UUID | None:
    """Delete an open invitation and return its id; None if it was used or has expired."""
    return session.scalar(
        delete(InvitationRow)
        .where(InvitationRow.id == invitation_id, *_OPEN)
        .returning(InvitationRow.id)
    )


def note_invitee(session: Session, *, invitation_id: UUID, user_id: UUID) -> None:
    session.execute(
        update(InvitationRow).where(InvitationRow.id == invitation_id).values(used_by=user_id)
    )


def list_open_invitations(session: Session) -> list[tuple[InvitationRow, str]]:
    """Return open invitations, each with the name of the user who made it, newest first."""
    rows = session.execute(
        select(InvitationRow, UserRow.name)
        .join(UserRow, UserRow.id == InvitationRow.created_by)
        .where(*_OPEN)
        .order_by(InvitationRow.created_at.desc(), InvitationRow.id)
    )
    return [(row, name) for row, name in rows]
