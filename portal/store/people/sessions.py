"""Sign-ins and the devices they came from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.people import Client, SessionKind, SignInMethod
from portal.store.models import KnownDeviceRow, SessionRow, TokenRow
from portal.store.people import tokens


def add_session(
    session: Session,
    *,
    user_id: UUID,
    kind: SessionKind,
    methods: Iterable[SignInMethod],
    client: Client,
    device_sha256: bytes | None,
    expires_at: datetime,
) -> SessionRow:
    row = SessionRow(
        user_id=user_id,
        kind=kind.value,
        methods=[method.value for method in methods],
        address=client.address,
        user_agent=client.user_agent,
        device_sha256=device_sha256,
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    return row


def list_sessions(session: Session, user_id: UUID) -> list[SessionRow]:
    """Return a user's live sessions, last used first."""
    live = select(SessionRow).where(_is_live(user_id))
    return list(session.scalars(live.order_by(SessionRow.last_used_at.desc(), SessionRow.id)))


def note_use(session: Session, session_id: UUID, *, address: str | None) -> None:
    """Record that a session was used, and from where. Callers do so at most once a minute."""
    session.execute(
        update(SessionRow)
        .where(SessionRow.id == session_id)
        .values(last_used_at=func.now(), address=func.coalesce(address, SessionRow.address))
    )


def extend(session: Session, session_id: UUID, *, expires_at: datetime) -> None:
    session.execute(
        update(SessionRow).where(SessionRow.id == session_id).values(expires_at=expires_at)
    )


def renew_authentication(
    session: Session, session_id: UUID, *, methods: Iterable[SignInMethod]
) -> None:
    """Record that the user has just proved again who they are."""
    session.execute(
        update(SessionRow)
        .where(SessionRow.id == session_id)
        .values(authenticated_at=func.now(), methods=[method.value for method in methods])
    )


def end_sessions(
    session: Session, user_id: UUID, *, only: UUID | None = None, all_but: UUID | None = None
) -> int:
    """End live sessions of a user with their tokens: all, one, or all but one. Return how many."""
    statement = update(SessionRow).where(_is_live(user_id))
    if only is not None:
        statement = statement.where(SessionRow.id == only)
    if all_but is not None:
        statement = statement.where(SessionRow.id != all_but)
    ended = session.scalars(statement.values(ended_at=func.now()).returning(SessionRow.id)).all()
    tokens.revoke(session, TokenRow.family_id.in_(ended))
    return len(ended)


def remember_device(session: Session, user_id: UUID, device_sha256: bytes) -> bool:
    """Record that a user signed in with a device; return whether it was new."""
    added = (
        insert(KnownDeviceRow)
        .values(user_id=user_id, device_sha256=device_sha256)
        .on_conflict_do_nothing()
        .returning(KnownDeviceRow.user_id)
    )
    if session.scalar(added) is not None:
        return True
    session.execute(
        update(KnownDeviceRow)
        .filter_by(user_id=user_id, device_sha256=device_sha256)
        .values(last_used_at=func.now())
    )
    return False


def has_devices(session: Session, user_id: UUID) -> bool:
    """Return whether a user has signed in before, with any device."""
    known = select(KnownDeviceRow.user_id).where(KnownDeviceRow.user_id == user_id).limit(1)
    return session.scalar(known) is not None


def delete_old(session: Session, *, sessions_before: datetime, devices_before: datetime) -> None:
    """Delete sessions that expired, and devices that were last used, before these moments."""
    session.execute(delete(SessionRow).where(SessionRow.expires_at < sessions_before))
    session.execute(delete(KnownDeviceRow).where(KnownDeviceRow.last_used_at < devices_before))


def _is_live(user_id: UUID) -> ColumnElement[bool]:
    return (
        (SessionRow.user_id == user_id)
        & SessionRow.ended_at.is_(None)
        & (SessionRow.expires_at > func.now())
    )
