"""The rows behind our JWTs: a token counts while its row lives."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.people import SCOPES, Scope, TokenKind
from portal.store.models import KnownDeviceRow, SessionRow, TokenRow, UserRow


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


# Built once: each request runs it.
_LIVE_TOKEN = (
    select(TokenRow, UserRow, SessionRow, KnownDeviceRow.created_at)
    .join(UserRow, UserRow.id == TokenRow.user_id)
    .outerjoin(SessionRow, SessionRow.id == TokenRow.family_id)
    .outerjoin(
        KnownDeviceRow,
        (KnownDeviceRow.user_id == SessionRow.user_id)
        & (KnownDeviceRow.device_sha256 == SessionRow.device_sha256),
    )
    .where(
        TokenRow.id == bindparam("token_id"),
        TokenRow.revoked_at.is_(None),
        UserRow.disabled_at.is_(None),
    )
)


def find_live_token(
    session: Session, token_id: UUID
) -> tuple[TokenRow, UserRow, SessionRow | None, datetime | None] | None:
    """Return the token, its user, its session and since when that session's device is known,
    unless the token was revoked or the user is disabled. Personal tokens and those of an outside
    issuer have no session."""
    row = session.execute(_LIVE_TOKEN, {"token_id": token_id}).one_or_none()
    return (row[0], row[1], row[2], row[3]) if row else None


def find_token(session: Session, token_id: UUID, *, lock: bool = False) -> TokenRow | None:
    statement = select(TokenRow).where(TokenRow.id == token_id)
    return session.scalar(statement.with_for_update() if lock else statement)


def note_use(session: Session, token_id: UUID, user_id: UUID) -> None:
    """Remember that a token was used, to the minute, so that reading does not write each time."""
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


def revoke_family(session: Session, family_id: UUID) -> None:
    """Revoke all tokens of one session. The session itself goes on, with new tokens."""
    session.execute(
        update(TokenRow)
        .where(TokenRow.family_id == family_id, TokenRow.revoked_at.is_(None))
        .values(revoked_at=func.now())
    )


def end_family(session: Session, family_id: UUID) -> None:
    """Revoke all tokens of one session and end the session."""
    revoke_family(session, family_id)
    session.execute(
        update(SessionRow)
        .where(SessionRow.id == family_id, SessionRow.ended_at.is_(None))
        .values(ended_at=func.now())
    )


def revoke_all(session: Session, user_id: UUID) -> None:
    """Revoke all tokens of a user, personal ones too, and end all sessions."""
    session.execute(
        update(TokenRow)
        .where(TokenRow.user_id == user_id, TokenRow.revoked_at.is_(None))
        .values(revoked_at=func.now())
    )
    session.execute(
        update(SessionRow)
        .where(SessionRow.user_id == user_id, SessionRow.ended_at.is_(None))
        .values(ended_at=func.now())
    )


def list_personal_tokens(session: Session, user_id: UUID) -> list[TokenRow]:
    """List live personal access tokens, newest first."""
    return list(
        session.scalars(
            select(TokenRow)
            .where(
                TokenRow.user_id == user_id,
                TokenRow.kind == TokenKind.PERSONAL.value,
                TokenRow.revoked_at.is_(None),
                TokenRow.expires_at > func.now(),
            )
            .order_by(TokenRow.created_at.desc(), TokenRow.id)
        )
    )


def revoke_personal_token(session: Session, *, user_id: UUID, token_id: UUID) -> bool:
    """Revoke one of a user's tokens; return False when there is no such live token."""
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
    """Forget tokens that ended long ago: a reused refresh token must be known for a while."""
    session.execute(delete(TokenRow).where(TokenRow.expires_at < before))
