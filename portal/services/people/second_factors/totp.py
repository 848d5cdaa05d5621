"""Authenticator apps (TOTP, RFC 6238): enrol one, and accept each of its codes once."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass
from datetime import UTC, datetime

import pyotp

from portal.domain.people import User
from portal.errors import Conflict, NotFound, TotpUnreadable, WrongSecondFactor
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people import sealing
from portal.services.people.second_factors import recovery_codes
from portal.store.models import TotpRow
from portal.store.people import accounts as account_store
from portal.store.people import second_factors as factor_store

ISSUER = "Knowledge portal"
PERIOD_S = 30
# Clocks of phones differ a little, and typing takes time.
_TOLERATED_STEPS = 1


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A secret that is not confirmed yet, as text and as the URI for a QR code."""

    secret: str
    uri: str


def begin(services: Services, user: User) -> Enrolment:
    """Create a new secret, in place of one that was never confirmed. Raises Conflict if an app is
    set up."""
    secret = pyotp.random_base32()
    with services.database.begin() as session:
        sealed = sealing.seal(services, secret.encode())
        if not factor_store.put_unconfirmed_totp(session, user.id, sealed):
            raise Conflict("an authenticator app is set up already; remove it first")
    return _enrolment(user, secret)


def find_enrolment(services: Services, user: User) -> Enrolment:
    """Return the secret that waits for its first code. Raises NotFound."""
    with services.database.read() as session:
        row = factor_store.find_totp(session, user.id)
    if row is None or row.confirmed_at is not None:
        raise NotFound
    try:
        return _enrolment(user, sealing.unseal(services, row.sealed_secret).decode())
    except sealing.Unreadable as error:
        raise NotFound from error


def _enrolment(user: User, secret: str) -> Enrolment:
    uri = pyotp.TOTP(secret).provisioning_uri(name=user.name, issuer_name=ISSUER)
    return Enrolment(secret, uri)


def confirm(services: Services, user: User, code: str) -> tuple[str, ...]:
    """Turn the enrolment into a second factor, given its first code. Return new recovery codes, or
    none if the user has some. Raises WrongSecondFactor, NotFound."""
    with services.database.begin() as session:
        account_store.lock_user(session, user.id)
        row = factor_store.find_totp(session, user.id)
        if row is None or row.confirmed_at is not None:
            raise NotFound
        if not accept_code(services, row, code):
            raise WrongSecondFactor
        row.confirmed_at = datetime.now(UTC)
        audit.record_own(session, AuditEvent.SECOND_FACTOR_ADDED, user, method="totp")
        return recovery_codes.ensure(session, user.id)


def accept_code(services: Services, row: TotpRow, code: str) -> bool:
    """Return whether a code is right and newer than the last accepted one; if so, record it as
    accepted. The caller holds the user's lock. Raises TotpUnreadable."""
    try:
        secret = sealing.unseal(services, row.sealed_secret).decode()
    except sealing.Unreadable as error:
        raise TotpUnreadable from error
    app, now = pyotp.TOTP(secret), int(time.time()) // PERIOD_S
    for step in range(now - _TOLERATED_STEPS, now + _TOLERATED_STEPS + 1):
        is_new = row.last_step is None or step > row.last_step
        if hmac.compare_digest(app.generate_otp(step).encode(), code.encode()) and is_new:
            row.last_step, row.last_used_at = step, datetime.now(UTC)
            # Encrypted again with the newest key, so that an old one can be dropped.
            row.sealed_secret = sealing.seal(services, secret.encode())
            return True
    return False


def remove(services: Services, user: User) -> None:
    """Remove the user's authenticator app. Raises NotFound."""
    with services.database.begin() as session:
        account_store.lock_user(session, user.id)
        if not factor_store.delete_totp(session, user.id):
            raise NotFound
        audit.record_own(session, AuditEvent.SECOND_FACTOR_REMOVED, user, method="totp")
        recovery_codes.delete_if_unneeded(session, user.id)
