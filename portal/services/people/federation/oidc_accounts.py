"""The account and role of a sign-in at the OpenID Connect provider.

Accounts are linked to an issuer and a subject, as for bearer tokens of an outside issuer. Names are
not compared: “admin” at the provider is not “admin” here.
"""

from __future__ import annotations

from uuid import UUID

from portal.domain.people import OutsideIdentity, SignedIn, SignInMethod, User, VerifiedUser
from portal.errors import (
    AccountClosed,
    LinkedElsewhere,
    NameNeedsLink,
    NameTaken,
    NotFound,
    NotInAllowedGroup,
    NotLinked,
    OnlyWayIn,
)
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people import sessions
from portal.services.people.accounts import check_name, may_use_password, to_verified_user
from portal.services.people.federation import oidc_sign_ins
from portal.services.people.federation.oidc_provider import OidcClaims
from portal.settings import OidcSettings
from portal.store.models import UserRow
from portal.store.people import accounts as account_store
from portal.store.people import outside_identities as identity_store
from portal.store.session import Session


def admit(services: Services, claims: OidcClaims) -> VerifiedUser:
    """Return the user that a sign-in belongs to, with the role that their groups give. Raises
    NotInAllowedGroup, AccountClosed, NotLinked, NameNeedsLink, InvalidInput."""
    settings = services.settings.oidc
    is_allowed = _is_allowed(settings, claims)
    issuer, subject = claims.issuer, claims.subject
    with services.database.begin() as session:
        identity_store.lock_subject(session, issuer=issuer, subject=subject)
        row = identity_store.find_user(session, issuer=issuer, subject=subject)
        if row is None and is_allowed:
            row = _create_account(session, settings, claims)
        if row is not None:
            _follow_groups(session, settings, row, claims.groups)
            if not is_allowed:
                oidc_sign_ins.end_sessions(session, issuer=issuer, subject=subject)
        user = to_verified_user(row) if row is not None else None
        is_closed = row is not None and row.disabled_at is not None
    # Raised outside the transaction, which would roll a lost role and ended sessions back.
    if not is_allowed:
        raise NotInAllowedGroup
    if user is None or is_closed:
        raise AccountClosed
    return user


def link(services: Services, user: User, claims: OidcClaims) -> None:
    """Link a sign-in at the provider to the account of the signed-in user. Raises
    NotInAllowedGroup, LinkedElsewhere."""
    if not _is_allowed(services.settings.oidc, claims):
        raise NotInAllowedGroup
    with services.database.begin() as session:
        if not identity_store.link_if_free(
            session, issuer=claims.issuer, subject=claims.subject, user_id=user.id
        ):
            raise LinkedElsewhere
        audit.record_own(
            session, AuditEvent.OIDC_LINKED, user, issuer=claims.issuer, subject=claims.subject
        )


def confirm(
    services: Services, signed_in: SignedIn, claims: OidcClaims, *, method: SignInMethod
) -> None:
    """Record that the user of a session has authenticated again. Raises LinkedElsewhere."""
    with services.database.read() as session:
        row = identity_store.find_user(session, issuer=claims.issuer, subject=claims.subject)
        is_same = row is not None and row.id == signed_in.user.id
    if not is_same:
        raise LinkedElsewhere
    sessions.renew_authentication(services, signed_in, method=method)


def is_linked(services: Services, user: User) -> bool:
    """Return whether a user can sign in through the provider."""
    issuer = services.settings.oidc.issuer
    return any(identity.issuer == issuer for identity in list_identities(services, user))


def unlink(
    services: Services, user: User, *, issuer: str, subject: str, keep: UUID | None = None
) -> None:
    """Remove a link and end the sessions that began with it, except `keep`. Raises NotFound,
    OnlyWayIn."""
    with services.database.begin() as session:
        row = account_store.lock_user(session, user.id)
        linked = [
            (identity.issuer, identity.subject)
            for identity in identity_store.list_identities(session, user.id)
        ]
        if row is None or (issuer, subject) not in linked:
            raise NotFound
        linked.remove((issuer, subject))
        if not has_other_way_in(services, row, issuers=[other for other, _ in linked]):
            raise OnlyWayIn
        identity_store.unlink(session, issuer=issuer, subject=subject)
        oidc_sign_ins.end_sessions(session, issuer=issuer, subject=subject, keep=keep)
        audit.record_own(session, AuditEvent.OIDC_UNLINKED, user, issuer=issuer, subject=subject)


def has_other_way_in(services: Services, row: UserRow, *, issuers: list[str]) -> bool:
    """Return whether a user can still sign in with a password or through one of `issuers`."""
    settings = services.settings.oidc
    if settings.issuer in issuers:
        return True
    return bool(row.password_hash) and may_use_password(settings, row.name)


def list_identities(services: Services, user: User) -> tuple[OutsideIdentity, ...]:
    """List a user's linked identities, oldest first."""
    with services.database.begin() as session:
        rows = identity_store.list_identities(session, user.id)
        return tuple(OutsideIdentity(row.issuer, row.subject, row.created_at) for row in rows)


def _is_allowed(settings: OidcSettings, claims: OidcClaims) -> bool:
    return not settings.allowed or not settings.allowed.isdisjoint(claims.groups)


def _create_account(session: Session, settings: OidcSettings, claims: OidcClaims) -> UserRow:
    """Create the account of a first sign-in and link it. Raises NotLinked, NameNeedsLink,
    InvalidInput."""
    name = check_name(claims.name)
    if not settings.create_accounts:
        if account_store.find_user_by_name(session, name) is not None:
            raise NameNeedsLink(name=name)
        raise NotLinked
    try:
        row = account_store.add_user(session, name=name, password_hash=None, is_admin=False)
    except NameTaken as error:
        raise NameNeedsLink(name=name) from error
    identity_store.link(session, issuer=claims.issuer, subject=claims.subject, user_id=row.id)
    for event in (AuditEvent.USER_CREATED, AuditEvent.OIDC_LINKED):
        audit.record_own(session, event, row, issuer=claims.issuer, subject=claims.subject)
    return row


def _follow_groups(
    session: Session, settings: OidcSettings, row: UserRow, groups: frozenset[str]
) -> None:
    """Grant or remove the role of an administrator, if the settings let groups decide it."""
    if not settings.admins:
        return
    is_admin = not settings.admins.isdisjoint(groups)
    if is_admin == row.is_admin or (not is_admin and _is_last(session, row)):
        return
    row.is_admin = is_admin
    audit.record(session, AuditEvent.ROLE_CHANGED, None, row, is_admin=is_admin, by="groups")


def _is_last(session: Session, row: UserRow) -> bool:
    """Return whether this is the last administrator, or the last with a password, who could sign in
    while the provider cannot be reached."""
    others = [one for one in account_store.lock_active_admins(session) if one.id != row.id]
    return not others or (bool(row.password_hash) and not any(o.password_hash for o in others))
