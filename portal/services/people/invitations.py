"""Invitations, each of which creates one account. With the setting `closed` there are none."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.people import Invitation, User, require_admin
from portal.errors import InvalidLink, InvitationsClosed, PasswordSignInOff, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people.accounts import check_name, hash_new_password
from portal.services.people.sealing import digest
from portal.store.models import InvitationRow
from portal.store.people import accounts as account_store

_INVITATION_LIFE = timedelta(days=7)


def is_closed(services: Services) -> bool:
    """Return whether invitations create no accounts, neither new ones nor those still open."""
    return services.settings.registration == "closed"


def invite(services: Services, user: User) -> Invitation:
    """Return an invitation, with the secret of a link that creates one account within a week.
    Administrators only. Raises InvitationsClosed."""
    require_admin(user)
    if is_closed(services):
        raise InvitationsClosed
    secret = secrets.token_urlsafe(24)
    with services.database.begin() as session:
        row = account_store.add_invitation(
            session,
            secret_sha256=digest(secret),
            created_by=user.id,
            expires_at=datetime.now(UTC) + _INVITATION_LIFE,
        )
        audit.record(
            session,
            AuditEvent.INVITATION_CREATED,
            user,
            Subject(SubjectKind.INVITATION, row.id),
            expires_at=row.expires_at.isoformat(),
        )
        return _to_invitation(row, user.name, secret)


def _to_invitation(row: InvitationRow, invited_by: str, secret: str | None = None) -> Invitation:
    return Invitation(
        id=row.id, created_at=row.created_at, expires_at=row.expires_at, invited_by=invited_by,
        secret=secret
    )  # fmt: skip


def list_invitations(services: Services, user: User) -> tuple[Invitation, ...]:
    """List invitations that are still open. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        rows = account_store.list_open_invitations(session)
        return tuple(_to_invitation(row, name) for row, name in rows)


def withdraw(services: Services, user: User, invitation_id: UUID) -> None:
    """Delete an open invitation, whose link then no longer works. Administrators only. Raises
    NotFound, also if it was used meanwhile."""
    require_admin(user)
    with services.database.begin() as session:
        existing(account_store.delete_open_invitation(session, invitation_id))
        audit.record(
            session,
            AuditEvent.INVITATION_WITHDRAWN,
            user,
            Subject(SubjectKind.INVITATION, invitation_id),
        )


def find_invitation(services: Services, secret: str) -> Invitation:
    """Return an open invitation by its secret. Raises InvalidLink if it was used, has expired or
    never existed, or if invitations are closed; PasswordSignInOff if its account could not sign
    in."""
    _require_usable(services)
    with services.database.begin() as session:
        row = account_store.find_open_invitation(session, secret_sha256=digest(secret))
        if row is None:
            raise InvalidLink
        inviter = account_store.get_user(session, row.created_by)
        return _to_invitation(row, inviter.name if inviter else "")


def _require_usable(services: Services) -> None:
    """Refuse all links while the settings allow no accounts by invitation."""
    if is_closed(services):
        raise InvalidLink
    if services.settings.oidc.only:
        raise PasswordSignInOff


def accept_invitation(services: Services, secret: str, *, name: str, password: str) -> User:
    """Create the one account that an invitation allows. Raises InvalidLink, PasswordSignInOff,
    NameTaken, WeakPassword, InvalidInput."""
    _require_usable(services)
    name = check_name(name)
    password_hash = hash_new_password(services, password, name=name)
    with services.database.begin() as session:
        invitation_id = account_store.use_invitation(session, secret_sha256=digest(secret))
        if invitation_id is None:
            raise InvalidLink
        row = account_store.add_user(
            session, name=name, password_hash=password_hash, is_admin=False
        )
        account_store.note_invitee(session, invitation_id=invitation_id, user_id=row.id)
        audit.record(
            session, AuditEvent.INVITATION_USED, row, Subject(SubjectKind.INVITATION, invitation_id)
        )
        audit.record(
            session, AuditEvent.USER_CREATED, None, row, by="invitation", is_admin=row.is_admin
        )
        return account_store.to_user(row)
