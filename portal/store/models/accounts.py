"""Accounts: users, their invitations and their tokens."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, CreatedAt, UserRef, UuidKey


class UserRow(Base):
    __tablename__ = "users"

    id: Mapped[UuidKey]
    name: Mapped[str]
    # Equal for names that look alike. None if two such names are older than this column.
    name_skeleton: Mapped[str | None] = mapped_column(unique=True)
    # None: the user signs in at the provider or by tokens of an outside issuer, or an administrator
    # reset the password.
    password_hash: Mapped[str | None]
    is_admin: Mapped[bool] = mapped_column(server_default=text("false"))
    language: Mapped[str | None]
    preferred_domain: Mapped[str | None]
    # Written by a trigger: the transaction that last changed this user's defaults.
    selection_version: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[CreatedAt]
    disabled_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]
    # In browser sessions, not API clients: the latest use, and the end of the previous visit.
    visited_at: Mapped[datetime | None]
    previous_visit_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("length(name) BETWEEN 1 AND 100", name="name_length"),
        # Names are unique without regard to case, so that no one poses as "Admin".
        Index("uq_users_name_lower", text("lower(name)"), unique=True),
    )


class GroupRow(Base):
    """A group of users, which can be a member of folders like a single user."""

    __tablename__ = "groups"

    id: Mapped[UuidKey]
    name: Mapped[str]
    description: Mapped[str] = mapped_column(server_default=text("''"))
    created_at: Mapped[CreatedAt]

    __table_args__ = (Index("uq_groups_name", text("lower(name)"), unique=True),)


class GroupMemberRow(Base):
    __tablename__ = "group_members"

    group_id: Mapped[UUID] = mapped_column(
        ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[UserRef] = mapped_column(primary_key=True, index=True)


class InvitationRow(Base):
    __tablename__ = "invitations"

    id: Mapped[UuidKey]
    secret_sha256: Mapped[bytes] = mapped_column(unique=True)
    created_by: Mapped[UserRef]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    used_by: Mapped[UUID | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))


class PasswordResetRow(Base):
    """A link by which a user sets a new password, once."""

    __tablename__ = "password_resets"

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    secret_sha256: Mapped[bytes] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime]


class TokenRow(Base):
    """One JWT; its id is the claim `jti`. A token without a live row is refused."""

    __tablename__ = "tokens"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    kind: Mapped[str]
    family_id: Mapped[UUID] = mapped_column(index=True)
    name: Mapped[str | None]
    scopes: Mapped[list[str]] = mapped_column(server_default=text("'{read,write,admin}'::text[]"))
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("kind IN ('access', 'refresh', 'personal', 'outside')", name="kind_known"),
        CheckConstraint("scopes <@ '{read,write,admin}'::text[]", name="scopes_known"),
    )


class SessionRow(Base):
    """One sign-in; its id is the `family_id` of the tokens that belong to it."""

    __tablename__ = "sessions"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    kind: Mapped[str]
    methods: Mapped[list[str]]
    address: Mapped[str | None]
    user_agent: Mapped[str] = mapped_column(server_default=text("''"))
    # The device in `known_devices`; None for the command line.
    device_sha256: Mapped[bytes | None]
    created_at: Mapped[CreatedAt]
    # When the user last proved who they are: at the sign-in, or when asked again.
    authenticated_at: Mapped[CreatedAt]
    last_used_at: Mapped[CreatedAt]
    expires_at: Mapped[datetime] = mapped_column(index=True)
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("kind IN ('browser', 'api', 'command_line')", name="kind_known"),
    )


class KnownDeviceRow(Base):
    """A device that a user has signed in with. A browser is known by a digest of its cookie, other
    clients by their user agent and network."""

    __tablename__ = "known_devices"

    user_id: Mapped[UserRef] = mapped_column(primary_key=True)
    device_sha256: Mapped[bytes] = mapped_column(primary_key=True)
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[CreatedAt] = mapped_column(index=True)


class OutsideIdentityRow(Base):
    """The user of a subject at an outside issuer. Names are no proof: anyone may be called “admin”
    elsewhere."""

    __tablename__ = "outside_identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UserRef] = mapped_column(index=True)
    created_at: Mapped[CreatedAt]


class OidcSignInRow(Base):
    """A sign-in at the provider, and the session here that it began: none yet while a second factor
    is missing."""

    __tablename__ = "oidc_sign_ins"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef] = mapped_column(index=True)
    session_id: Mapped[UUID | None] = mapped_column(
        ForeignKey("sessions.id", ondelete="CASCADE"), unique=True
    )
    issuer: Mapped[str]
    subject: Mapped[str]
    sid: Mapped[str | None]
    # The hint that the provider wants when a user signs out there.
    id_token: Mapped[str]
    created_at: Mapped[CreatedAt]

    __table_args__ = (
        Index("ix_oidc_sign_ins_issuer_subject", "issuer", "subject"),
        Index("ix_oidc_sign_ins_issuer_sid", "issuer", "sid"),
    )


class OidcUsedValueRow(Base):
    """The digest of a used `state` or logout token, kept until that expires, to refuse a replay."""

    __tablename__ = "oidc_used_values"

    digest: Mapped[bytes] = mapped_column(primary_key=True)
    expires_at: Mapped[datetime] = mapped_column(index=True)
