"""Pending sign-ins: the password was right, the second factor is still missing.

The state is signed and valid for some minutes, but not a session: it gives no access. The browser
keeps it in a cookie that scripts cannot read, so a second factor counts only in the browser that
sent the password.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from itsdangerous import BadSignature, URLSafeTimedSerializer

from portal.domain.people import SignInMethod, VerifiedUser
from portal.errors import SignInExpired
from portal.services import Services

LIFE_S = 10 * 60


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A user who has used `methods` so far."""

    user: VerifiedUser
    methods: tuple[SignInMethod, ...]


def begin(services: Services, user: VerifiedUser, *, methods: Sequence[SignInMethod]) -> str:
    """Return the signed state of a sign-in that needs another method."""
    used = [method.value for method in methods]
    # The last field distinguishes sign-ins in the same second: wrong codes are counted for each.
    fields = [str(user.id), user.name, user.credentials, used, secrets.token_hex(8)]
    return _serializer(services).dumps(fields)


def load(services: Services, state: str) -> PendingSignIn:
    """Read a state that `begin` made. Raises SignInExpired."""
    try:
        fields = _serializer(services).loads(state, max_age=LIFE_S)
        user_id, name, credentials, methods, _ = fields
    except (BadSignature, ValueError, TypeError) as error:
        raise SignInExpired from error
    return PendingSignIn(
        user=VerifiedUser(id=UUID(user_id), name=name, credentials=credentials),
        methods=tuple(map(SignInMethod, methods)),
    )


def _serializer(services: Services) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(services.secret_keys, salt="portal-pending-sign-in")
