"""Sign-ins at the OpenID Connect provider, and values that may be used once."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.store.models import OidcSignInRow, OidcUsedValueRow, SessionRow


def add_sign_in(
    session: Session, *, user_id: UUID, issuer: str, subject: str, sid: str | None, id_token: str
) -> UUID:
    row = OidcSignInRow(user_id=user_id, issuer=issuer, subject=subject, sid=sid, id_token=id_token)
    session.add(row)
    session.flush()
    return row.id


def attach(session: Session, sign_in_id: UUID, *, session_id: UUID, user_id: UUID) -> bool:
    """Record which session a sign-in of this user began; return False if it is over, or began
    another."""
    attached = session.scalar(
        update(OidcSignInRow)
        .where(
            OidcSignInRow.id == sign_in_id,
            OidcSignInRow.user_id == user_id,
            OidcSignInRow.session_id.is_(None),
        )
        .values(session_id=session_id)
        .returning(OidcSignInRow.id)
    )
    return attached is not None


def find_id_token(session: Session, *, session_id: UUID, issuer: str) -> str | None:
    """Return the id token of a session; None if it did not begin at this provider."""
    return session.scalar(
        select(OidcSignInRow.id_token).filter_by(session_id=session_id, issuer=issuer)
    )


def take_sessions(
    session: Session, *, issuer: str, subject: str | None, sid: str | None
) -> list[UUID]:
    """Delete the sign-ins of a subject, of a session at the provider, or of both together, and
    return the live sessions that they began. Unfinished sign-ins can then no longer begin one."""
    statement = delete(OidcSignInRow).where(OidcSignInRow.issuer == issuer)
    if subject is not None:
        statement = statement.where(OidcSignInRow.subject == subject)
    if sid is not None:
        statement = statement.where(OidcSignInRow.sid == sid)
    begun = session.scalars(statement.returning(OidcSignInRow.session_id)).all()
    return list(
        session.scalars(
            select(SessionRow.id).where(SessionRow.id.in_(begun), SessionRow.ended_at.is_(None))
        )
    )


def use_once(session: Session, digest: bytes, *, expires_at: datetime) -> bool:
    """Mark a value as used; return False if it was used before."""
    statement = insert(OidcUsedValueRow).values(digest=digest, expires_at=expires_at)
    statement = statement.on_conflict_do_nothing(index_elements=[OidcUsedValueRow.digest])
    return session.scalar(statement.returning(OidcUsedValueRow.digest)) is not None


def delete_old(session: Session, *, begun_before: datetime) -> None:
    """Delete used values that have expired, and sign-ins that began no session or one that has
    ended."""
    session.execute(delete(OidcUsedValueRow).where(OidcUsedValueRow.expires_at < func.now()))
    ended = select(SessionRow.id).where(SessionRow.ended_at.is_not(None))
    is_over = OidcSignInRow.session_id.in_(ended) | (
        OidcSignInRow.session_id.is_(None) & (OidcSignInRow.created_at < begun_before)
    )
    session.execute(delete(OidcSignInRow).where(is_over))
