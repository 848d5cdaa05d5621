"""Authenticator apps, passkeys, recovery codes, and the failed attempts at them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.people.second_factors import FactorMethod
from portal.store.models import (
    PasskeyRow,
    RecoveryCodeRow,
    SecondFactorFailureRow,
    SpentChallengeRow,
    TotpRow,
)


def has_second_factor(session: Session, user_id: UUID) -> bool:
    """Return whether signing in asks this user for more than a password."""
    totp = exists().where(TotpRow.user_id == user_id, TotpRow.confirmed_at.is_not(None))
    passkey = exists().where(PasskeyRow.user_id == user_id)
    return bool(session.scalar(select(or_(totp, passkey))))


def users_with_second_factor(session: Session) -> frozenset[UUID]:
    """Return the ids of all accounts that have a second factor."""
    confirmed = select(TotpRow.user_id).where(TotpRow.confirmed_at.is_not(None))
    return frozenset(session.scalars(confirmed.union(select(PasskeyRow.user_id))))


def find_totp(session: Session, user_id: UUID) -> TotpRow | None:
    return session.get(TotpRow, user_id)


def put_unconfirmed_totp(session: Session, user_id: UUID, sealed_secret: bytes) -> bool:
    """Start an enrolment, in place of an unfinished one; return False if an app is confirmed."""
    statement = insert(TotpRow).values(user_id=user_id, sealed_secret=sealed_secret)
    stored = session.scalar(
        statement.on_conflict_do_update(
            index_elements=[TotpRow.user_id],
            set_={"sealed_secret": sealed_secret, "created_at": func.now()},
            where=TotpRow.confirmed_at.is_(None),
        ).returning(TotpRow.user_id)
    )
    return stored is not None


def delete_totp(session: Session, user_id: UUID) -> bool:
    """Delete the user's confirmed authenticator app; return whether there was one."""
    confirmed = delete(TotpRow).where(TotpRow.user_id == user_id, TotpRow.confirmed_at.is_not(None))
    return session.scalar(confirmed.returning(TotpRow.user_id)) is not None


def list_passkeys(session: Session, user_id: UUID) -> list[PasskeyRow]:
    """Return a user's passkeys, oldest first."""
    own = select(PasskeyRow).where(PasskeyRow.user_id == user_id)
    return list(session.scalars(own.order_by(PasskeyRow.created_at, PasskeyRow.id)))


def find_passkey(session: Session, credential_id: bytes) -> PasskeyRow | None:
    """Return a passkey by its credential id, locked because its counter is about to change."""
    return session.scalar(
        select(PasskeyRow).where(PasskeyRow.credential_id == credential_id).with_for_update()
    )


def add_passkey(
    session: Session,
    *,
    user_id: UUID,
    name: str,
    rp_id: str,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    transports: Iterable[str],
) -> UUID | None:
    """Store a passkey and return its id; None if the credential is already registered, by any
    user."""
    statement = insert(PasskeyRow).values(
        user_id=user_id,
        name=name,
        rp_id=rp_id,
        credential_id=credential_id,
        public_key=public_key,
        sign_count=sign_count,
        transports=list(transports),
    )
    return session.scalar(
        statement.on_conflict_do_nothing(index_elements=[PasskeyRow.credential_id]).returning(
            PasskeyRow.id
        )
    )


def delete_passkey(session: Session, *, user_id: UUID, passkey_id: UUID) -> str | None:
    """Delete one of a user's passkeys and return its name; None if there is no such passkey."""
    return session.scalar(
        delete(PasskeyRow).filter_by(id=passkey_id, user_id=user_id).returning(PasskeyRow.name)
    )


def delete_all(session: Session, user_id: UUID) -> None:
    """Delete a user's second factors and recovery codes, and the failed attempts."""
    for table in (TotpRow, PasskeyRow, RecoveryCodeRow, SecondFactorFailureRow):
        session.execute(delete(table).where(table.user_id == user_id))


def replace_recovery_codes(session: Session, user_id: UUID, digests: Iterable[bytes]) -> None:
    """Replace a user's recovery codes, given as digests."""
    delete_recovery_codes(session, user_id)
    session.execute(
        insert(RecoveryCodeRow), [{"user_id": user_id, "code_sha256": digest} for digest in digests]
    )


def delete_recovery_codes(session: Session, user_id: UUID) -> None:
    session.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user_id))


def count_recovery_codes(session: Session, user_id: UUID) -> int:
    """Return how many codes are unused."""
    unused = (RecoveryCodeRow.user_id == user_id, RecoveryCodeRow.used_at.is_(None))
    return session.scalar(select(func.count()).where(*unused)) or 0


def use_recovery_code(session: Session, user_id: UUID, digest: bytes) -> bool:
    """Mark an unused code as used; return False if there is no such code."""
    used = session.scalar(
        update(RecoveryCodeRow)
        .where(
            RecoveryCodeRow.user_id == user_id,
            RecoveryCodeRow.code_sha256 == digest,
            RecoveryCodeRow.used_at.is_(None),
        )
        .values(used_at=func.now())
        .returning(RecoveryCodeRow.user_id)
    )
    return used is not None


def add_failure(
    session: Session, user_id: UUID, method: FactorMethod, *, sign_in_sha256: bytes | None
) -> None:
    session.add(
        SecondFactorFailureRow(user_id=user_id, method=method.value, sign_in_sha256=sign_in_sha256)
    )
    session.flush()


def count_failures_of_sign_in(session: Session, user_id: UUID, sign_in_sha256: bytes) -> int:
    """Return how many wrong codes were sent with one pending sign-in."""
    row = SecondFactorFailureRow
    failed = (row.user_id == user_id, row.sign_in_sha256 == sign_in_sha256)
    return session.scalar(select(func.count()).where(*failed)) or 0


def failure_wait_s(
    session: Session, user_id: UUID, method: FactorMethod, *, max_failures: int, window: timedelta
) -> float:
    """Return the seconds until `window` has fewer than `max_failures`; 0 if it does already."""
    left = SecondFactorFailureRow.failed_at + window - func.clock_timestamp()
    wait_s = session.scalar(
        select(func.extract("epoch", left))
        .where(
            SecondFactorFailureRow.user_id == user_id,
            SecondFactorFailureRow.method == method.value,
            SecondFactorFailureRow.failed_at > func.clock_timestamp() - window,
        )
        .order_by(SecondFactorFailureRow.failed_at.desc())
        .offset(max_failures - 1)
        .limit(1)
    )
    return max(0.0, float(wait_s or 0))


def spend_challenge(session: Session, digest: bytes, *, expires_at: datetime) -> bool:
    """Record that a challenge was answered; return False if it had been before."""
    statement = insert(SpentChallengeRow).values(challenge_sha256=digest, expires_at=expires_at)
    spent = session.scalar(
        statement.on_conflict_do_nothing(
            index_elements=[SpentChallengeRow.challenge_sha256]
        ).returning(SpentChallengeRow.challenge_sha256)
    )
    return spent is not None


def delete_old(session: Session, *, failures_before: datetime) -> None:
    """Delete failures that no longer count, and challenges that have expired."""
    session.execute(
        delete(SecondFactorFailureRow).where(SecondFactorFailureRow.failed_at < failures_before)
    )
    session.execute(delete(SpentChallengeRow).where(SpentChallengeRow.expires_at < func.now()))
