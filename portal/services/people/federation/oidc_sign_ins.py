"""Sign-ins at the OpenID Connect provider: the sessions that they begin, and how those end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.people import SignedIn, VerifiedUser
from portal.errors import InvalidLogoutToken, ProviderSignInExpired, ProviderSignInFailed
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people.federation.oidc_provider import LOGOUT_TOKEN_LIFE_S, OidcClaims
from portal.services.people.sealing import digest
from portal.store.people import oidc_sign_ins as sign_in_store
from portal.store.people import tokens as token_store
from portal.store.session import Session

LIFE_S = 600
"""How long a sign-in at the provider may take, and then a second factor here."""


def remember(services: Services, user: VerifiedUser, claims: OidcClaims) -> UUID:
    """Store what the provider said about a sign-in, so that it can end the session."""
    with services.database.begin() as session:
        return sign_in_store.add_sign_in(
            session,
            user_id=user.id,
            issuer=claims.issuer,
            subject=claims.subject,
            sid=claims.session_id,
            id_token=claims.id_token,
        )


def attach(services: Services, sign_in_id: UUID, *, session_id: UUID, user_id: UUID) -> None:
    """Record which session a sign-in began. Ends that session and raises ProviderSignInExpired when
    the provider has ended the sign-in meanwhile, or it began another session."""
    with services.database.begin() as session:
        if sign_in_store.attach(session, sign_in_id, session_id=session_id, user_id=user_id):
            return
        token_store.end_family(session, session_id)
    raise ProviderSignInExpired


def sign_out_address(services: Services, signed_in: SignedIn, *, return_to: str) -> str | None:
    """Return where the browser signs out at the provider; None if the session did not begin there,
    or the provider has no such page."""
    if services.oidc is None or signed_in.session is None:
        return None
    with services.database.begin() as session:
        id_token = sign_in_store.find_id_token(
            session, session_id=signed_in.session.id, issuer=services.oidc.issuer
        )
    if id_token is None:
        return None
    return services.oidc.end_session_address(id_token=id_token, return_to=return_to)


def use_state(services: Services, state: str) -> bool:
    """Mark the state of a sign-in as used; False if it was used before."""
    with services.database.begin() as session:
        return _use_once(session, f"state {state}", life_s=LIFE_S)


def end_by_logout_token(services: Services, token: str) -> None:
    """End the sessions that a logout token names. Raises InvalidLogoutToken for one that does not
    verify or was used before, ProviderUnavailable."""
    if services.oidc is None:
        raise InvalidLogoutToken
    try:
        claims = services.oidc.verify_logout_token(token)
    except ProviderSignInFailed as error:
        raise InvalidLogoutToken from error
    # Remembered for longer than it is accepted, because clocks differ.
    life_s = LOGOUT_TOKEN_LIFE_S + 3 * services.settings.jwt.leeway_s
    with services.database.begin() as session:
        if not _use_once(session, f"logout {claims.issuer} {claims.token_id}", life_s=life_s):
            raise InvalidLogoutToken
        end_sessions(session, issuer=claims.issuer, subject=claims.subject, sid=claims.session_id)


def end_sessions(
    session: Session,
    *,
    issuer: str,
    subject: str | None,
    sid: str | None = None,
    keep: UUID | None = None,
) -> None:
    """End the sessions of a subject, or of a session at the provider, except `keep`."""
    for session_id in sign_in_store.take_sessions(session, issuer=issuer, subject=subject, sid=sid):
        if session_id == keep:
            continue
        token_store.end_family(session, session_id)
        audit.record(
            session,
            AuditEvent.SESSION_ENDED,
            None,
            Subject(SubjectKind.SESSION, session_id),
            by="provider",
        )


def delete_expired(services: Services) -> None:
    """Delete sign-ins that were not completed or whose session has ended."""
    begun_before = datetime.now(UTC) - timedelta(seconds=2 * LIFE_S)
    with services.database.begin() as session:
        sign_in_store.delete_old(session, begun_before=begun_before)


def _use_once(session: Session, value: str, *, life_s: int) -> bool:
    expires_at = datetime.now(UTC) + timedelta(seconds=life_s)
    return sign_in_store.use_once(session, digest(value), expires_at=expires_at)
