"""Second factors: what a user proves beside the password, and where passkeys are valid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MAX_PASSKEYS = 20


class FactorMethod(StrEnum):
    """How a second step was passed."""

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
    """`rp_id` is the domain name that it works at."""

    id: UUID
    name: str
    rp_id: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """What an account has set up. Recovery codes alone are not a second factor."""

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
    """What an authenticator signs. Good for one answer, in the browser that asked for it.

    `user_id` is None for a sign-in that starts with a passkey.
    """

    value: bytes
    user_id: UUID | None
    expires_at: datetime
