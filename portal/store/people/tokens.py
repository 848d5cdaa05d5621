"""Rows of JWTs: a token is only valid while its row exists and is not revoked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.people import SCOPES, Scope, TokenKind
from portal.store.models import SessionRow, TokenRow, UserRow
from portal.store.statements import Reader, fetch


def add_token(
    session: Session,
    *,
    token_id: UUID,
    user_id: UUID,
    kind: TokenKind,
    family_id: UUID,
    expires_at: datetime,
    name: str | None = None,
    scopes: Iterable[Scope] = SCOPES,
) -> None:
    """Add a token unless there is one: two requests at once may bring the same token of an outside
    issuer."""
    statement = insert(TokenRow).values(
        id=token_id,
        user_id=user_id,
        kind=kind.value,
        family_id=family_id,
        expires_at=expires_at,
        name=name,
        scopes=[scope.value for scope in SCOPES if scope in set(scopes)],
    )
    session.execute(statement.on_conflict_do_nothing(index_elements=[TokenRow.id]))


class LiveToken(NamedTuple):
    """A valid token with its user and its session. Personal tokens and those of an outside issuer
    have no session. `device_known_since` is about the session's device."""

    id: UUID
    kind: str
    scopes: list[str]
    last_used_at: datetime | None
    user_id: UUID
    user_name: str
    is_admin: bool
    language: str | None
    preferred_domain: str | None
    session_id: UUID | None
    session_kind: str | None
    authenticated_at: datetime | None
    methods: list[str] | None
    device_known_since: datetime | None


# Each request waits for this, so it is prepared, and creates no ORM objects.
_LIVE_TOKEN = text(
    """
    SELECT t.id, t.kind, t.scopes, t.last_used_at,
           u.id, u.name, u.is_admin, u.language, u.preferred_domain,
           s.id, s.kind, s.authenticated_at, s.methods, k.created_at
    FROM tokens t
    JOIN users u ON u.id = t.user_id
    LEFT JOIN sessions s ON s.id = t.family_id
    LEFT JOIN known_devices k ON k.user_id = s.user_id AND k.device_sha256 = s.device_sha256
    WHERE t.id = :token_id AND t.revoked_at IS NULL AND u.disabled_at IS NULL
    """
)


def find_live_token(reader: Reader, token_id: UUID) -> LiveToken | None:
    """Return a token, unless it was revoked or its user is disabled."""
    rows = fetch(reader, _LIVE_TOKEN, {"token_id": token_id})
    return LiveToken(*rows[0]) if rows else None


def find_token(session: Session, token_id: UUID, *, lock: bool = False) -> TokenRow | None:
    statement = select(TokenRow).where(TokenRow.id == token_id)
    return session.scalar(statement.with_for_update() if lock else statement)


def note_use(session: Session, token_id: UUID, user_id: UUID) -> None:
    """Record that a token was used, at most once a minute, and that its user was seen."""
    minute_ago = func.now() - func.make_interval(0, 0, 0, 0, 0, 1)
    session.execute(
        update(TokenRow)
        .where(
            TokenRow.id == token_id,
            (TokenRow.last_used_at.is_(None)) | (TokenRow.last_used_at < minute_ago),
        )
        .values(last_used_at=func.now())
    )
    session.execute(update(UserRow).where(UserRow.id == user_id).values(last_seen_at=func.now()))


def revoke(session: Session, *which: ColumnElement[bool]) -> None:
    """Revoke the tokens that match these conditions, unless they are revoked already."""
    live = update(TokenRow).where(*which, TokenRow.revoked_at.is_(None))
    session.execute(live.values(revoked_at=func.now()))


def _end_sessions(session: Session, which: ColumnElement[bool]) -> None:
    live = update(SessionRow).where(which, SessionRow.ended_at.is_(None))
    session.execute(live.values(ended_at=func.now()))


def revoke_family(session: Session, family_id: UUID) -> None:
    """Revoke all tokens of one session. The session itself continues, with new tokens."""
    revoke(session, TokenRow.family_id == family_id)


def end_family(session: Session, family_id: UUID) -> None:
    """Revoke all tokens of one session and end the session."""
    revoke_family(session, family_id)
    _end_sessions(session, SessionRow.id == family_id)


def revoke_all(session: Session, user_id: UUID) -> None:
    """Revoke all tokens of a user, including personal ones, and end all sessions."""
    revoke(session, TokenRow.user_id == user_id)
    _end_sessions(session, SessionRow.user_id == user_id)


def list_personal_tokens(session: Session, user_id: UUID) -> list[TokenRow]:
    """Return a user's live personal access tokens, newest first."""
    live = select(TokenRow).where(
        TokenRow.user_id == user_id,
        TokenRow.kind == TokenKind.PERSONAL.value,
        TokenRow.revoked_at.is_(None),
        TokenRow.expires_at > func.now(),
    )
    return list(session.scalars(live.order_by(TokenRow.created_at.desc(), TokenRow.id)))


def revoke_personal_token(session: Session, *, user_id: UUID, token_id: UUID) -> bool:
    """Revoke one of a user's personal tokens; return False if there is none, or it is revoked."""
    revoked = session.scalar(
        update(TokenRow)
        .where(
            TokenRow.id == token_id,
            TokenRow.user_id == user_id,
            TokenRow.kind == TokenKind.PERSONAL.value,
            TokenRow.revoked_at.is_(None),
        )
        .values(revoked_at=func.now())
        .returning(TokenRow.id)
    )
    return revoked is not None


def delete_expired(session: Session, *, before: datetime) -> None:
    """Delete tokens that expired before a moment, which is long ago: a reused refresh token must be
    recognised for a while."""
    session.execute(delete(TokenRow).where(TokenRow.expires_at < before))
