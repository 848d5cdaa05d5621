"""Changes to accounts by administrators and the operator: roles and passwords."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.people import PasswordReset, User, require_admin
from portal.errors import Conflict, InvalidLink, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people.accounts import (
    disable,
    hash_new_password,
    normalise_name,
    refuse_last_admin,
)
from portal.services.people.sealing import digest
from portal.store.models import UserRow
from portal.store.people import accounts as account_store
from portal.store.people import password_resets as reset_store
from portal.store.people import tokens as token_store
from portal.store.session import Session

_RESET_LIFE = timedelta(hours=24)


def set_role(services: Services, user: User, user_id: UUID, *, is_admin: bool) -> None:
    """Make a user an administrator, or an ordinary user. Administrators only. Raises NotFound, and
    Conflict for the last administrator."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user_id))
        _set_role(session, row, user, is_admin=is_admin)


def change_account(
    services: Services, user: User, user_id: UUID, *, is_admin: bool | None, disabled: bool | None
) -> None:
    """Change the given fields, all or nothing. Administrators only. Raises NotFound, Conflict."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user_id))
        if is_admin is not None:
            _set_role(session, row, user, is_admin=is_admin)
            session.flush()
        if disabled is not None and disabled != (row.disabled_at is not None):
            disable(session, row, user, disabled=disabled)


def set_role_by_name(services: Services, name: str, *, is_admin: bool) -> None:
    """Change a role for the operator. Raises NoSuchAccount, Conflict."""
    with services.database.begin() as session:
        row = account_store.get_user_by_name(session, normalise_name(name))
        _set_role(session, row, None, is_admin=is_admin)


def _set_role(session: Session, row: UserRow, actor: User | None, *, is_admin: bool) -> None:
    if not is_admin:
        refuse_last_admin(session, row)
    if row.is_admin != is_admin:
        row.is_admin = is_admin
        audit.record(session, AuditEvent.ROLE_CHANGED, actor, row, is_admin=is_admin)


def begin_password_reset(services: Services, user: User, user_id: UUID) -> PasswordReset:
    """Remove a user's password, end all sessions and tokens, and return the secret of a link that
    sets a new password, once and within a day. Administrators only. Raises NotFound, and Conflict
    for one's own account.
    """
    require_admin(user)
    if user_id == user.id:
        raise Conflict("this is your own account; change its password on the account page")
    secret, expires_at = secrets.token_urlsafe(24), datetime.now(UTC) + _RESET_LIFE
    with services.database.begin() as session:
        row = existing(account_store.lock_user(session, user_id))
        # The old password must not work before the link is used.
        row.password_hash = None
        session.flush()
        token_store.revoke_all(session, user_id)
        reset_store.replace(
            session, user_id=user_id, secret_sha256=digest(secret), expires_at=expires_at
        )
        audit.record(
            session, AuditEvent.PASSWORD_RESET, user, row, expires_at=expires_at.isoformat()
        )
    return PasswordReset(secret=secret, name=row.name, expires_at=expires_at)


def find_password_reset(services: Services, secret: str) -> str:
    """Return the name of the account that a link is for. Raises InvalidLink if it was used, has
    expired or never existed."""
    with services.database.begin() as session:
        return _open_reset(session, secret).name


def finish_password_reset(services: Services, secret: str, *, password: str) -> None:
    """Set the password that a link allows, and end all sessions. Raises InvalidLink,
    WeakPassword."""
    name = find_password_reset(services, secret)
    password_hash = hash_new_password(services, password, name=name)
    with services.database.begin() as session:
        row = _open_reset(session, secret)
        # If two requests use the link at once, one finds it used.
        if not reset_store.use(session, secret_sha256=digest(secret)):
            raise InvalidLink
        _set_password(session, row, password_hash)
        audit.record_own(session, AuditEvent.PASSWORD_CHANGED, row, by="reset_link")


def _open_reset(session: Session, secret: str) -> UserRow:
    row = reset_store.find_user(session, secret_sha256=digest(secret))
    if row is None or row.disabled_at is not None:
        raise InvalidLink
    return row


def set_password(services: Services, name: str, password: str) -> None:
    """Set a user's password for the operator, and end all sessions and tokens. Raises
    NoSuchAccount, WeakPassword."""
    password_hash = hash_new_password(services, password, name=name)
    with services.database.begin() as session:
        row = account_store.get_user_by_name(session, normalise_name(name))
        _set_password(session, row, password_hash)
        audit.record(session, AuditEvent.PASSWORD_RESET, None, row)


def _set_password(session: Session, row: UserRow, password_hash: str) -> None:
    account_store.lock_user(session, row.id)
    row.password_hash = password_hash
    session.flush()
    token_store.revoke_all(session, row.id)
    reset_store.delete_for_user(session, row.id)
