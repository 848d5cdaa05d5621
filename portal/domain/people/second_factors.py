"""Second factors, and where passkeys are valid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MAX_PASSKEYS = 20


class FactorMethod(StrEnum):
    """The method of a second step."""

    TOTP = "totp"
    PASSKEY = "passkey"
    RECOVERY_CODE = "recovery_code"


@dataclass(frozen=True, slots=True)
class Totp:
    """A confirmed authenticator app."""

    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey; `rp_id` is the domain name that it is valid for."""

    id: UUID
    name: str
    rp_id: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """The second factors of an account. Recovery codes alone do not count as one."""

    totp: Totp | None = None
    passkeys: tuple[Passkey, ...] = ()
    recovery_codes_left: int = 0

    @property
    def is_on(self) -> bool:
        """Return whether signing in asks for more than the password."""
        return self.totp is not None or bool(self.passkeys)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The site that passkeys are bound to: a domain name, and the origin that browsers report."""

    id: str
    origin: str


@dataclass(frozen=True, slots=True)
class Challenge:
    """The bytes that an authenticator signs, once, in the browser that asked for them. `user_id` is
    None for a sign-in that starts with a passkey."""

    value: bytes
    user_id: UUID | None
    expires_at: datetime
