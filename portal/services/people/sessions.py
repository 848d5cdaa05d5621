"""Start, list and end sessions and personal tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from portal.domain.people import (
    Client,
    PersonalToken,
    Scope,
    SessionKind,
    SessionSummary,
    SignedIn,
    SignInMethod,
    StartedSession,
    TokenKind,
    TokenPair,
    User,
    VerifiedUser,
    require_admin,
    with_implied,
)
from portal.domain.people.devices import parse_device
from portal.errors import (
    Forbidden,
    NeedsSession,
    NotFound,
    TooManyTokens,
    WrongCredentials,
    existing,
)
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.services.people import second_factors, tokens
from portal.services.people.accounts import (
    check_name,
    credentials_digest,
    to_verified_user,
    verify_password,
)
from portal.store.documents import notifications as notification_store
from portal.store.models import SessionRow, TokenRow, UserRow
from portal.store.people import accounts as account_store
from portal.store.people import sessions as session_store
from portal.store.people import tokens as token_store
from portal.store.session import Session

MAX_PERSONAL_TOKENS = 20
_MAX_USER_AGENT_CHARACTERS = 300
_OPERATOR = Client()


def start_session(
    services: Services,
    user: VerifiedUser,
    *,
    kind: SessionKind,
    methods: Sequence[SignInMethod],
    client: Client,
    ttl_s: int | None = None,
) -> StartedSession:
    """Start a session for a user who has proved who they are by `methods`.

    Every way to sign in ends here, so that each session is recorded with its device. Raises
    WrongCredentials when the account was disabled or got a new password since the user was
    verified, SecondFactorRequired when it requires a second factor.
    """
    settings = services.settings.jwt
    # A browser cannot renew its token unnoticed, so its token lives as long as a refresh token.
    life_s = ttl_s or settings.refresh_ttl_s
    client = replace(client, user_agent=client.user_agent[:_MAX_USER_AGENT_CHARACTERS])
    with services.database.begin() as session:
        row = account_store.lock_user(session, user.id)
        if row is None or row.disabled_at or credentials_digest(row) != user.credentials:
            raise WrongCredentials
        device = None if kind is SessionKind.COMMAND_LINE else _device_digest(client)
        second_factors.require_second_step(session, user.id, methods)
        session_id = session_store.add_session(
            session,
            user_id=user.id,
            kind=kind,
            methods=methods,
            client=client,
            device_sha256=device,
            expires_at=datetime.now(UTC) + timedelta(seconds=life_s),
        ).id
        audit.record(
            session,
            AuditEvent.SIGN_IN,
            row,
            Subject(SubjectKind.SESSION, session_id),
            kind=kind.value,
            methods=[method.value for method in methods],
        )
        if device is not None:
            _note_device(session, row, device, client)
        if kind is SessionKind.API:
            pair = tokens.issue_pair(services, session, user_id=user.id, family_id=session_id)
            return StartedSession(
                session_id, pair.access_token, pair.expires_in_s, pair.refresh_token
            )
        access_token = tokens.issue(
            services,
            session,
            user_id=user.id,
            kind=TokenKind.ACCESS,
            ttl_s=life_s,
            family_id=session_id,
        )
        return StartedSession(session_id, access_token, life_s)


def _note_device(session: Session, user: UserRow, digest: bytes, client: Client) -> None:
    """Remember the device of a sign-in. Notify the user of a new one, except at their very first
    sign-in."""
    is_first = user.last_seen_at is None and not session_store.has_devices(session, user.id)
    if not session_store.remember_device(session, user.id, digest) or is_first:
        return
    device = parse_device(client.user_agent)
    details = {"program": device.program, "platform": device.platform, "address": client.address}
    notification_store.add_new_device(session, user.id, details)
    audit.record_own(session, AuditEvent.NEW_DEVICE, user, **details)


def _device_digest(client: Client) -> bytes:
    """Return a digest of what identifies a device: a browser's secret, else program and address."""
    parts = (
        ("browser", client.browser_id)
        if client.browser_id
        else ("client", client.user_agent, client.address or "")
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def sign_in(
    services: Services,
    *,
    name: str,
    password: str,
    code: str | None = None,
    client: Client | None = None,
) -> TokenPair:
    """Sign an API client in with a password and, if the account requires one, a code of the
    authenticator app or a recovery code. Raises WrongCredentials, and what
    `second_factors.check_code` and `start_session` raise."""
    user = verify_password(services, name, password)
    methods = [SignInMethod.PASSWORD]
    if code is not None and second_factors.has_any(services, user.id):
        methods.append(second_factors.check_code(services, user.id, code))
    started = start_session(
        services, user, kind=SessionKind.API, methods=methods, client=client or Client()
    )
    return TokenPair(started.access_token, started.refresh_token or "", started.expires_in_s)


def confirm_password(services: Services, signed_in: SignedIn, password: str) -> None:
    """Check the password of a session's user and renew its authentication. Raises WrongCredentials,
    NeedsSession."""
    verify_password(services, signed_in.user.name, password, purpose="confirmation")
    renew_authentication(services, signed_in, method=SignInMethod.PASSWORD)


def renew_authentication(services: Services, signed_in: SignedIn, *, method: SignInMethod) -> None:
    """Record that the user of a session has just authenticated again by `method`. Raises
    NeedsSession."""
    if signed_in.session is None:
        raise NeedsSession
    methods = dict.fromkeys((*signed_in.session.methods, method))
    with services.database.begin() as session:
        session_store.renew_authentication(session, signed_in.session.id, methods=methods)


def list_sessions(services: Services, signed_in: SignedIn) -> tuple[SessionSummary, ...]:
    """List the live sessions of the user who sent the request, last used first."""
    current = signed_in.session.id if signed_in.session else None
    with services.database.read() as session:
        rows = session_store.list_sessions(session, signed_in.user.id)
        return tuple(_summary(row, current) for row in rows)


def list_sessions_of(services: Services, user: User, user_id: UUID) -> tuple[SessionSummary, ...]:
    """List the live sessions of another user. Administrators only."""
    require_admin(user)
    with services.database.read() as session:
        return tuple(_summary(row, None) for row in session_store.list_sessions(session, user_id))


def _summary(row: SessionRow, current: UUID | None) -> SessionSummary:
    return SessionSummary(
        id=row.id,
        kind=SessionKind(row.kind),
        device=parse_device(row.user_agent),
        address=row.address,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        methods=tuple(map(SignInMethod, row.methods)),
        is_current=row.id == current,
    )


def end_session(services: Services, user: User, session_id: UUID) -> None:
    """End one of a user's own sessions. Raises NotFound."""
    with services.database.begin() as session:
        if not session_store.end_sessions(session, user.id, only=session_id):
            raise NotFound
        subject = Subject(SubjectKind.SESSION, session_id)
        audit.record(session, AuditEvent.SESSION_ENDED, user, subject)


def end_other_sessions(services: Services, signed_in: SignedIn) -> int:
    """End all sessions of a user except the current one; return their number."""
    current = signed_in.session.id if signed_in.session else None
    user = signed_in.user
    with services.database.begin() as session:
        ended = session_store.end_sessions(session, user.id, all_but=current)
        _record_ended(session, user, user, ended)
        return ended


def end_sessions_of(services: Services, user: User, user_id: UUID) -> int:
    """End all sessions of another user and return their number; personal tokens stay.
    Administrators only. Raises NotFound."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user_id))
        ended = session_store.end_sessions(session, user_id)
        _record_ended(session, user, row, ended)
        return ended


def _record_ended(session: Session, actor: User, subject: User | UserRow, ended: int) -> None:
    if ended:
        audit.record(session, AuditEvent.SESSION_ENDED, actor, subject, sessions=ended)


def sign_out(services: Services, signed_in: SignedIn) -> None:
    """End the session that this token belongs to."""
    tokens.end_family(services, signed_in.user, signed_in.token_id, AuditEvent.SIGN_OUT)


def token_for(services: Services, user: User, *, ttl_s: int) -> str:
    """Issue an access token for the operator on the command line. Raises WrongCredentials."""
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user.id))
        signed_in = to_verified_user(row)
    return start_session(
        services,
        signed_in,
        kind=SessionKind.COMMAND_LINE,
        methods=[SignInMethod.OPERATOR],
        client=_OPERATOR,
        ttl_s=ttl_s,
    ).access_token


def create_personal_token(
    services: Services,
    user: User,
    *,
    name: str,
    ttl_s: int,
    scopes: Iterable[Scope] = (Scope.READ,),
) -> tuple[PersonalToken, str]:
    """Create a token for scripts and return it with its secret, which is never stored. Each of
    `scopes` includes the lesser ones. Raises InvalidInput, Forbidden, TooManyTokens."""
    name, scopes, token_id = check_name(name), with_implied(scopes), uuid4()
    if Scope.ADMIN in scopes and not user.is_admin:
        raise Forbidden
    with services.database.begin() as session:
        # Locked, so that tokens that are created at the same time are all counted.
        account_store.lock_user(session, user.id)
        if len(token_store.list_personal_tokens(session, user.id)) >= MAX_PERSONAL_TOKENS:
            raise TooManyTokens(limit=MAX_PERSONAL_TOKENS)
        secret = tokens.issue(
            services,
            session,
            user_id=user.id,
            kind=TokenKind.PERSONAL,
            ttl_s=ttl_s,
            family_id=uuid4(),
            name=name,
            scopes=scopes,
            token_id=token_id,
        )
        row = existing(token_store.find_token(session, token_id))
        made = _personal_token(row)
        audit.record(
            session,
            AuditEvent.TOKEN_CREATED,
            user,
            Subject(SubjectKind.TOKEN, token_id, name),
            kind=row.kind,
            scope=made.level.value,
            ttl_s=ttl_s,
        )
        return made, secret


def list_personal_tokens(services: Services, user: User) -> tuple[PersonalToken, ...]:
    """List the user's live tokens, newest first."""
    with services.database.begin() as session:
        rows = token_store.list_personal_tokens(session, user.id)
        return tuple(_personal_token(row) for row in rows)


def _personal_token(row: TokenRow) -> PersonalToken:
    return PersonalToken(
        id=row.id,
        name=row.name or "",
        scopes=frozenset(map(Scope, row.scopes)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )


def revoke_personal_token(services: Services, user: User, token_id: UUID) -> None:
    """Revoke a user's personal token. Raises NotFound when the user has no such live token."""
    with services.database.begin() as session:
        if not token_store.revoke_personal_token(session, user_id=user.id, token_id=token_id):
            raise NotFound
        row = token_store.find_token(session, token_id)
        audit.record(
            session,
            AuditEvent.TOKEN_REVOKED,
            user,
            Subject(SubjectKind.TOKEN, token_id, row.name if row else None),
        )
