"""Accounts that tokens of an external issuer belong to.

An account is linked to an issuer and a subject, by an administrator or by a first sign-in at the
OpenID Connect provider. Names are not compared: “admin” elsewhere is not “admin” here.
"""

from __future__ import annotations

from portal.domain.people import TokenKind
from portal.errors import CommandRefused, InvalidInput, InvalidToken, UnknownSubject
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people.federation import oidc_sign_ins
from portal.services.people.federation.outside_tokens import OutsideClaims
from portal.store.people import accounts as account_store
from portal.store.people import outside_identities as identity_store
from portal.store.people import tokens as token_store
from portal.store.people.tokens import LiveToken
from portal.store.session import Session


def admit(session: Session, claims: OutsideClaims) -> LiveToken:
    """Return the row of a verified token, creating it at the first use. Raises InvalidToken,
    UnknownSubject."""
    user = identity_store.find_user(session, issuer=claims.issuer, subject=claims.subject)
    if user is None:
        raise UnknownSubject
    if user.disabled_at is not None:
        raise InvalidToken
    found = token_store.find_live_token(session, claims.token_id)
    if found is None:
        token_store.add_token(
            session,
            token_id=claims.token_id,
            user_id=user.id,
            kind=TokenKind.OUTSIDE,
            family_id=claims.token_id,
            expires_at=claims.expires_at,
            scopes=claims.scopes,
        )
        audit.record(session, AuditEvent.SIGN_IN, user, by="outside_token", issuer=claims.issuer)
        found = token_store.find_live_token(session, claims.token_id)
    # The row belongs to another user if the subject was linked again since the token's first use.
    if found is None or found.user_id != user.id:
        raise InvalidToken
    return found


def link(services: Services, *, name: str, subject: str, issuer: str | None = None) -> None:
    """Let an issuer's tokens and sign-ins with this subject open an account. Raises CommandRefused,
    InvalidInput, NoSuchAccount."""
    issuer = _issuer(services, issuer)
    with services.database.begin() as session:
        user = account_store.get_user_by_name(session, name)
        identity_store.link(session, issuer=issuer, subject=subject, user_id=user.id)
        audit.record(session, AuditEvent.OIDC_LINKED, None, user, issuer=issuer, subject=subject)


def unlink(services: Services, *, subject: str, issuer: str | None = None) -> bool:
    """Unlink a subject and end its sessions; return False if it was not linked. Raises
    CommandRefused, InvalidInput."""
    issuer = _issuer(services, issuer)
    with services.database.begin() as session:
        user = identity_store.find_user(session, issuer=issuer, subject=subject)
        if user is None:
            return False
        identity_store.unlink(session, issuer=issuer, subject=subject)
        oidc_sign_ins.end_sessions(session, issuer=issuer, subject=subject)
        audit.record(session, AuditEvent.OIDC_UNLINKED, None, user, issuer=issuer, subject=subject)
        return True


def _issuer(services: Services, given: str | None) -> str:
    """Return the given issuer, or the only one in the settings."""
    settings = services.settings
    known = list(dict.fromkeys(filter(None, (settings.jwt.outside.issuer, settings.oidc.issuer))))
    if not known:
        raise CommandRefused(
            "An account is linked to an issuer and its `sub`, and the settings name no issuer: set "
            "PORTAL_OIDC__ISSUER or PORTAL_JWT__OUTSIDE__ISSUER."
        )
    if given in known or (given is None and len(known) == 1):
        return given or known[0]
    raise InvalidInput("the issuer is one of %(names)s", names=", ".join(known))
