"""Issue, verify and end signed tokens."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Lock
from typing import Any
from uuid import UUID, uuid4

import jwt
from cachetools import LRUCache, cached

from portal.domain.people import (
    SCOPES,
    AuthenticatedSession,
    Scope,
    SessionKind,
    SignedIn,
    SignInMethod,
    TokenKind,
    TokenPair,
    User,
)
from portal.errors import InvalidToken, NeedsSession
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people import second_factors
from portal.services.people.federation import outside_accounts, outside_tokens
from portal.store.people import accounts as account_store
from portal.store.people import sessions as session_store
from portal.store.people import tokens as token_store
from portal.store.people.tokens import LiveToken
from portal.store.session import Session

# The only algorithm of our own tokens.
ALGORITHM = "HS256"
_REQUIRED_CLAIMS = ["iss", "aud", "sub", "iat", "exp", "jti", "typ"]


def issue(
    services: Services,
    session: Session,
    *,
    user_id: UUID,
    kind: TokenKind,
    ttl_s: int,
    family_id: UUID,
    name: str | None = None,
    scopes: Iterable[Scope] = SCOPES,
    token_id: UUID | None = None,
) -> str:
    """Return a signed token with a row in the database, so that it can be ended early."""
    token_id, now = token_id or uuid4(), datetime.now(UTC)
    expires_at = now + timedelta(seconds=ttl_s)
    token_store.add_token(
        session,
        token_id=token_id,
        user_id=user_id,
        kind=kind,
        family_id=family_id,
        expires_at=expires_at,
        name=name,
        scopes=scopes,
    )
    claims = {
        "iss": services.settings.jwt.issuer,
        "aud": services.settings.jwt.audience,
        "sub": str(user_id),
        "iat": int(now.timestamp()),
        "exp": int(expires_at.timestamp()),
        "jti": str(token_id),
        "typ": kind.value,
    }
    return jwt.encode(claims, services.secret_key, algorithm=ALGORITHM)


def issue_pair(
    services: Services, session: Session, *, user_id: UUID, family_id: UUID
) -> TokenPair:
    """Issue an access token and the refresh token that renews it."""
    settings = services.settings.jwt

    def make(kind: TokenKind, ttl_s: int) -> str:
        return issue(
            services, session, user_id=user_id, kind=kind, ttl_s=ttl_s, family_id=family_id
        )

    return TokenPair(
        access_token=make(TokenKind.ACCESS, settings.access_ttl_s),
        refresh_token=make(TokenKind.REFRESH, settings.refresh_ttl_s),
        expires_in_s=settings.access_ttl_s,
    )


def read_claims(services: Services, token: str, *, kinds: set[TokenKind]) -> dict[str, Any]:
    """Return verified claims with `jti` and `sub` as UUIDs. Raises InvalidToken."""
    try:
        claims = _verify(services, token)
        kind = TokenKind(claims["typ"])
        claims = claims | {"jti": UUID(claims["jti"]), "sub": UUID(claims["sub"]), "typ": kind}
    except (jwt.InvalidTokenError, ValueError, TypeError, AttributeError) as error:
        raise InvalidToken from error
    if kind not in kinds:
        raise InvalidToken
    return claims


def _verify(services: Services, token: str) -> dict[str, Any]:
    """Verify a token with the current key, or the previous one. Raises jwt.InvalidTokenError."""
    settings = services.settings.jwt

    def verify(key: str) -> dict[str, Any]:
        return _signed_claims(token, key, settings.issuer, settings.audience, settings.leeway_s)

    try:
        claims = verify(services.secret_key)
    except jwt.InvalidSignatureError:
        if services.old_secret_key is None:
            raise
        claims = verify(services.old_secret_key)
    if int(claims["exp"]) <= datetime.now(UTC).timestamp() - settings.leeway_s:
        raise jwt.ExpiredSignatureError
    return claims


def _digested(token: str, *others: object) -> Hashable:
    return (sha256(token.encode()).digest(), *others)


# A valid signature stays valid, and so do the claims of a token except its expiry, which each
# request checks, like the token's row. The cache key includes the signing key, so that a replaced
# key is no longer accepted, and a digest instead of the token. Refused tokens are not cached.
@cached(LRUCache(1024), key=_digested, lock=Lock())
def _signed_claims(
    token: str, key: str, issuer: str, audience: str, leeway_s: float
) -> dict[str, Any]:
    """Return the claims of a token with this signature. Raises jwt.InvalidTokenError."""
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[ALGORITHM],
        issuer=issuer,
        audience=audience,
        leeway=leeway_s,
        options={"require": _REQUIRED_CLAIMS},
    )
    return claims


def authenticate(services: Services, token: str, *, address: str | None = None) -> SignedIn:
    """Return the user and the rights of a bearer or browser token. `address` is where the request
    comes from, for the list of sessions. Raises InvalidToken, IssuerUnavailable."""
    if outside_tokens.is_outside(services, token):
        return _authenticate_outside(services, token)
    claims = read_claims(services, token, kinds={TokenKind.ACCESS, TokenKind.PERSONAL})
    with services.database.driver() as reader:
        found = token_store.find_live_token(reader, claims["jti"])
    if found is None or found.user_id != claims["sub"] or found.kind != claims["typ"].value:
        raise InvalidToken
    signed_in = _to_signed_in(found)
    if second_factors.must_enrol(services, signed_in):
        signed_in = replace(signed_in, must_enrol=True)
    if _is_stale_use(found.last_used_at) and services.database.can_write:
        with services.database.begin() as session:
            _note_use(session, signed_in, address=address)
    return signed_in


def _authenticate_outside(services: Services, token: str) -> SignedIn:
    # Loading the keys may take a while, so no transaction is open meanwhile.
    claims = outside_tokens.read_claims(services, token)
    with services.database.begin() as session:
        found = outside_accounts.admit(session, claims)
        signed_in = _to_signed_in(found)
        if _is_stale_use(found.last_used_at) and services.database.can_write:
            _note_use(session, signed_in)
        return signed_in


def _note_use(session: Session, signed_in: SignedIn, *, address: str | None = None) -> None:
    token_store.note_use(session, signed_in.token_id, signed_in.user.id)
    if signed_in.session is not None:
        session_store.note_use(session, signed_in.session.id, address=address)
        if signed_in.session.kind is SessionKind.BROWSER:
            account_store.note_visit(session, signed_in.user.id)


def _to_signed_in(found: LiveToken) -> SignedIn:
    scopes = frozenset(map(Scope, found.scopes))
    session = None
    if found.session_id and found.session_kind and found.authenticated_at:
        session = AuthenticatedSession(
            id=found.session_id,
            kind=SessionKind(found.session_kind),
            authenticated_at=found.authenticated_at,
            methods=tuple(map(SignInMethod, found.methods or ())),
        )
    return SignedIn(
        # A token without the scope to administer does not see what administrators see either.
        user=User(
            id=found.user_id,
            name=found.user_name,
            is_admin=found.is_admin and Scope.ADMIN in scopes,
            language=found.language,
            preferred_domain=found.preferred_domain,
            device_known_since=found.device_known_since,
        ),
        token_id=found.id,
        token_kind=TokenKind(found.kind),
        scopes=scopes,
        session=session,
    )


def _is_stale_use(last_used_at: datetime | None) -> bool:
    # Once a minute is enough to show the last use, and keeps most requests from writing.
    return last_used_at is None or datetime.now(UTC) - last_used_at > timedelta(minutes=1)


def refresh(services: Services, refresh_token: str) -> TokenPair:
    """Return a new pair of tokens for a refresh token, and end that token. One that was used before
    has been copied, so its whole family ends. Raises InvalidToken."""
    claims = read_claims(services, refresh_token, kinds={TokenKind.REFRESH})
    with services.database.begin() as session:
        row = token_store.find_token(session, claims["jti"], lock=True)
        user = account_store.get_user(session, claims["sub"])
        usable = row is not None and user is not None and user.disabled_at is None
        if row is not None and row.revoked_at is not None:
            token_store.end_family(session, row.family_id)
            name = user.name if user else None
            audit.record(
                session,
                AuditEvent.SESSION_ENDED,
                None,
                Subject(SubjectKind.SESSION, row.family_id, name),
                reason="refresh_token_reused",
            )
            usable = False
        if usable and row is not None:
            token_store.revoke_family(session, row.family_id)
            expires_at = datetime.now(UTC) + timedelta(seconds=services.settings.jwt.refresh_ttl_s)
            session_store.extend(session, row.family_id, expires_at=expires_at)
            return issue_pair(services, session, user_id=row.user_id, family_id=row.family_id)
    # Raised outside the transaction: inside, it would roll the family's end back.
    raise InvalidToken


def end_family(
    services: Services,
    user: User,
    token_id: UUID,
    event: AuditEvent = AuditEvent.SESSION_ENDED,
) -> None:
    """End a user's token and all that came from the same sign-in. `event` goes into the audit log,
    except for a personal token."""
    with services.database.begin() as session:
        row = token_store.find_token(session, token_id)
        if row is None or row.user_id != user.id or row.revoked_at is not None:
            return
        token_store.end_family(session, row.family_id)
        is_personal = row.kind == TokenKind.PERSONAL
        audit.record(
            session,
            AuditEvent.TOKEN_REVOKED if is_personal else event,
            user,
            Subject(SubjectKind.TOKEN, row.id, row.name)
            if is_personal
            else Subject(SubjectKind.SESSION, row.family_id),
        )


def revoke(services: Services, caller: SignedIn, token: str) -> None:
    """End one of the caller's tokens and its family; do nothing for one that is not valid here or
    another user's (RFC 7009). A token of the outside issuer ends only in this portal. Raises
    NeedsSession if the caller has no session and names another token than its own."""
    token_id = _find_id(services, token)
    if caller.token_kind is not TokenKind.ACCESS and token_id != caller.token_id:
        raise NeedsSession
    if token_id is not None:
        end_family(services, caller.user, token_id)


def _find_id(services: Services, token: str) -> UUID | None:
    try:
        if outside_tokens.is_outside(services, token):
            return _authenticate_outside(services, token).token_id
        token_id: UUID = read_claims(services, token, kinds=set(TokenKind))["jti"]
    except InvalidToken:
        return None
    return token_id
