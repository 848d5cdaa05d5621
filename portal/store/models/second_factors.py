"""Second factors of accounts: authenticator apps, passkeys, recovery codes, failed attempts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, CreatedAt, UserRef, UuidKey


class TotpRow(Base):
    """A user's only authenticator app. It becomes a second factor when a code has confirmed it."""

    __tablename__ = "totp_secrets"

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    # Encrypted with a key derived from the portal's secret key (services/people/sealing.py).
    sealed_secret: Mapped[bytes]
    created_at: Mapped[CreatedAt]
    confirmed_at: Mapped[datetime | None]
    # The time step of the last code that was accepted: it and earlier ones are refused.
    last_step: Mapped[int | None] = mapped_column(BigInteger)
    last_used_at: Mapped[datetime | None]


class PasskeyRow(Base):
    __tablename__ = "passkeys"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    name: Mapped[str]
    # The domain name that it was registered at, and works at.
    rp_id: Mapped[str]
    credential_id: Mapped[bytes] = mapped_column(unique=True)
    public_key: Mapped[bytes]
    sign_count: Mapped[int] = mapped_column(BigInteger)
    transports: Mapped[list[str]] = mapped_column(server_default=text("'{}'::text[]"))
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[datetime | None]

    __table_args__ = (CheckConstraint("length(name) BETWEEN 1 AND 100", name="name_length"),)


class RecoveryCodeRow(Base):
    __tablename__ = "recovery_codes"

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    code_sha256: Mapped[bytes] = mapped_column(primary_key=True)
    created_at: Mapped[CreatedAt]
    used_at: Mapped[datetime | None]


class SecondFactorFailureRow(Base):
    """A wrong code. Counted for a user and method, and for the sign-in that it was sent with."""

    __tablename__ = "second_factor_failures"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    user_id: Mapped[UserRef]
    method: Mapped[str]
    # A digest of the pending sign-in; null if the code came with the password.
    sign_in_sha256: Mapped[bytes | None]
    failed_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))

    __table_args__ = (
        CheckConstraint("method IN ('totp', 'recovery_code')", name="method_known"),
        Index("ix_second_factor_failures_recent", "user_id", "method", "failed_at"),
    )


class SpentChallengeRow(Base):
    """A WebAuthn challenge that was answered. Kept until it would have expired."""

    __tablename__ = "spent_challenges"

    challenge_sha256: Mapped[bytes] = mapped_column(primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
