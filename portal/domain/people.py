"""Who asks, and what their tokens say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from portal.errors import Forbidden


class TokenKind(StrEnum):
    ACCESS = "access"
    REFRESH = "refresh"
    PERSONAL = "personal"
    OUTSIDE = "outside"
    """Of the issuer that the settings name; its row is made when it is first used."""


class Scope(StrEnum):
    """What a token may do, each level with all below it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


SCOPES = tuple(Scope)
"""From the least to the most."""


def with_lesser(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Whoever may write may read, and an administrator may both."""
    most = max(map(SCOPES.index, scopes), default=-1)
    return frozenset(SCOPES[: most + 1])


@dataclass(frozen=True, slots=True)
class Person:
    """Someone with an account, as every use case sees them. `is_admin` says what counts now: a
    token without the scope `admin` makes an ordinary person of an administrator."""

    id: UUID
    name: str
    is_admin: bool
    language: str | None = None
    preferred_domain: str | None = None


def require_admin(person: Person) -> None:
    """Raise Forbidden unless `person` is an administrator."""
    if not person.is_admin:
        raise Forbidden


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person together with the token that showed who they are."""

    person: Person
    token_id: UUID
    token_kind: TokenKind
    scopes: frozenset[Scope]


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
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None

    @property
    def level(self) -> Scope:
        """The most that it may do."""
        return max(self.scopes, key=SCOPES.index, default=Scope.READ)
