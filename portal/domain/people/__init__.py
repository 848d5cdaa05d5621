"""Users, sessions and tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from portal.domain.people.devices import Device
from portal.errors import Forbidden


class TokenKind(StrEnum):
    ACCESS = "access"
    REFRESH = "refresh"
    PERSONAL = "personal"
    OUTSIDE = "outside"
    """From the issuer in the settings; its row is created on first use."""


class Scope(StrEnum):
    """The scope of a token; each level includes those below it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


SCOPES = tuple(Scope)
"""From the lowest to the highest."""


def with_implied(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Return these scopes with the lower ones: write includes read, admin includes both."""
    highest = max(map(SCOPES.index, scopes), default=-1)
    return frozenset(SCOPES[: highest + 1])


@dataclass(frozen=True, slots=True)
class User:
    """A user, as use cases see them. `is_admin` is what applies now: with a token without the scope
    `admin`, an administrator is an ordinary user."""

    id: UUID
    name: str
    is_admin: bool
    language: str | None = None
    preferred_domain: str | None = None
    device_known_since: datetime | None = field(default=None, compare=False)
    """When the device of this session was first used; None if unknown. Notifications about a new
    device are not shown on that device."""


def require_admin(user: User) -> None:
    """Raise Forbidden unless `user` is an administrator."""
    if not user.is_admin:
        raise Forbidden


class SessionKind(StrEnum):
    """The way a session was started."""

    BROWSER = "browser"
    API = "api"
    COMMAND_LINE = "command_line"


class SignInMethod(StrEnum):
    """The proof of who a user is."""

    PASSWORD = "password"  # noqa: S105 - the name of a method
    TOTP = "totp"
    PASSKEY = "passkey"
    RECOVERY_CODE = "recovery_code"
    OIDC = "oidc"
    OIDC_MFA = "oidc_mfa"
    """At the provider, which reported that it asked for two factors."""
    OPERATOR = "operator"
    """Access to the server: tokens of the command line."""


OIDC_METHODS = frozenset({SignInMethod.OIDC, SignInMethod.OIDC_MFA})


@dataclass(frozen=True, slots=True)
class Client:
    """The origin of a sign-in. `browser_id` is the secret that a browser keeps in a cookie."""

    address: str | None = None
    user_agent: str = ""
    browser_id: str | None = None


@dataclass(frozen=True, slots=True)
class VerifiedUser:
    """A user who has just proved who they are, by at least one method. `credentials` is a digest of
    the credentials they were checked against. A session starts only if it is unchanged, so that a
    password reset also stops sign-ins in progress."""

    id: UUID
    name: str
    credentials: str


@dataclass(frozen=True, slots=True)
class StartedSession:
    """A new session and its tokens; only API sessions have a refresh token."""

    id: UUID
    access_token: str
    expires_in_s: int
    refresh_token: str | None = None


@dataclass(frozen=True, slots=True)
class AuthenticatedSession:
    """The session of a request. `authenticated_at` is when the user last proved who they are."""

    id: UUID
    kind: SessionKind
    authenticated_at: datetime
    methods: tuple[SignInMethod, ...]


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """An active session in its user's list."""

    id: UUID
    kind: SessionKind
    device: Device
    address: str | None
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    methods: tuple[SignInMethod, ...]
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user with the token that identifies them. Personal tokens and those of an outside issuer
    have no session."""

    user: User
    token_id: UUID
    token_kind: TokenKind
    scopes: frozenset[Scope]
    session: AuthenticatedSession | None = None
    must_enrol: bool = False
    """Whether a second factor has to be set up before this session opens anything else."""


@dataclass(frozen=True, slots=True)
class TokenPair:
    access_token: str
    refresh_token: str
    expires_in_s: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link that lets one user create an account; `secret` is known only on creation."""

    id: UUID
    created_at: datetime
    expires_at: datetime
    invited_by: str
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class PasswordReset:
    """A link to set a new password; `secret` is known only on creation."""

    secret: str = field(repr=False)
    name: str
    expires_at: datetime


class DocumentFate(StrEnum):
    """What to do with the documents of a deleted account."""

    TRANSFER = "transfer"
    """They go to another user."""
    KEEP_SHARED = "keep_shared"
    """Shared ones go to an administrator, private ones are erased."""
    TRASH = "trash"
    """They go into the trash, under an administrator."""
    PURGE = "purge"
    """They are erased."""


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
        """Return the highest scope."""
        return max(self.scopes, key=SCOPES.index, default=Scope.READ)


@dataclass(frozen=True, slots=True)
class OutsideIdentity:
    """An account at an issuer, linked to one here."""

    issuer: str
    subject: str
    linked_at: datetime
