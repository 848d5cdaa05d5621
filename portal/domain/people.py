"""Who asks, and what their tokens say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class TokenKind(StrEnum):
    ACCESS = "access"
    REFRESH = "refresh"
    PERSONAL = "personal"


@dataclass(frozen=True, slots=True)
class Person:
    """Someone with an account, as every use case sees them."""

    id: UUID
    name: str
    is_admin: bool
    language: str | None = None
    preferred_domain: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person together with the token that showed who they are."""

    person: Person
    token_id: UUID
    token_kind: TokenKind


@dataclass(frozen=True, slots=True)
class TokenPair:
    access_token: str
    refresh_token: str
    expires_in_s: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link that lets one person make an account; `secret` is known only when it is made."""

    id: UUID
    expires_at: datetime
    invited_by: str
    secret: str | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AccountSummary:
    id: UUID
    name: str
    is_admin: bool
    created_at: datetime
    disabled_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class PersonalToken:
    id: UUID
    name: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
