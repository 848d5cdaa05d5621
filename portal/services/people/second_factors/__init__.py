"""Second factors: what a user has set up, who needs one, and checking a code at sign-in."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.people import SignedIn, SignInMethod, TokenKind, User, require_admin
from portal.domain.people.second_factors import FactorMethod, Passkey, SecondFactors, Totp
from portal.errors import (
    NotFound,
    PortalError,
    SecondFactorLocked,
    SecondFactorRequired,
    SignInExpired,
    TotpUnreadable,
    WrongSecondFactor,
)
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people.second_factors import recovery_codes, totp
from portal.services.transactions import reading
from portal.settings import Settings
from portal.store.documents import notifications as notification_store
from portal.store.models import UserRow
from portal.store.people import accounts as account_store
from portal.store.people import second_factors as factor_store
from portal.store.session import Session

MAX_FAILURES_OF_SIGN_IN = 5
# Of a million codes three are right at any moment: in a year of guessing without pause, an
# attacker who has the password passes with a chance of about 3 %.
_FAILURE_LIMITS = ((10, timedelta(hours=1)), (30, timedelta(days=1)))
_MAX_WINDOW_LENGTH = timedelta(days=1)
# Methods without a password: second steps are up to the provider, or to the operator.
_EXEMPT = {SignInMethod.OIDC_MFA, SignInMethod.OPERATOR}
# A provider that did not report two factors is assumed to have checked one.
_FIRST_FACTORS = {SignInMethod.PASSWORD, SignInMethod.OIDC}


has_any = reading(factor_store.has_second_factor)


def load(services: Services, user_id: UUID) -> SecondFactors:
    """Return the second factors that a user has set up."""
    with services.database.read() as session:
        row = factor_store.find_totp(session, user_id)
        return SecondFactors(
            totp=Totp(row.created_at, row.last_used_at) if row and row.confirmed_at else None,
            passkeys=tuple(
                Passkey(
                    passkey.id,
                    passkey.name,
                    passkey.rp_id,
                    passkey.created_at,
                    passkey.last_used_at,
                )
                for passkey in factor_store.list_passkeys(session, user_id)
            ),
            recovery_codes_left=factor_store.count_recovery_codes(session, user_id),
        )


def users_with_any(services: Services, user: User) -> frozenset[UUID]:
    """Return the ids of all users that have a second factor. Administrators only."""
    require_admin(user)
    with services.database.read() as session:
        return factor_store.users_with_second_factor(session)


def require_second_step(session: Session, user_id: UUID, methods: Iterable[SignInMethod]) -> None:
    """Refuse a session that rests on one factor if the account has a second one. Raises
    SecondFactorRequired."""
    if set(methods) <= _FIRST_FACTORS and factor_store.has_second_factor(session, user_id):
        raise SecondFactorRequired


def is_required(settings: Settings, *, is_admin: bool) -> bool:
    """Return whether the settings require a second factor for such an account."""
    required = settings.sign_in.require_second_factor
    return required == "everyone" or (required == "administrators" and is_admin)


def check_code(
    services: Services, user_id: UUID, code: str, *, sign_in: str | None = None
) -> SignInMethod:
    """Accept a code of the authenticator app, or a recovery code, once.

    `sign_in` is the pending sign-in that the code belongs to. Wrong codes are counted for it, and
    for the user and the method, so that starting again gains nothing, and guessing at one method
    does not lock the other. Raises WrongSecondFactor, SecondFactorLocked, SignInExpired,
    TotpUnreadable.
    """
    code = unicodedata.normalize("NFKC", code).strip()
    if not code:
        raise WrongSecondFactor
    is_number = "".join(code.split()).isdecimal()
    method = FactorMethod.TOTP if is_number else FactorMethod.RECOVERY_CODE
    sign_in_sha256 = hashlib.sha256(sign_in.encode()).digest() if sign_in else None
    with services.database.begin() as session:
        # Locked to the end, so that each of several attempts at once sees the others' failures.
        user = account_store.lock_user(session, user_id)
        if user is None:
            raise WrongSecondFactor
        error = _refusal(session, user.id, method, sign_in_sha256)
        try:
            if error is None and not _is_right(services, session, user, code, method):
                error = WrongSecondFactor()
        except TotpUnreadable as unreadable:
            error = unreadable
        if isinstance(error, WrongSecondFactor):
            _note_failure(session, user, method, sign_in_sha256)
    # Raised outside the transaction: inside, it would roll the failure back.
    if error is not None:
        raise error
    return SignInMethod(method.value)


def _refusal(
    session: Session, user_id: UUID, method: FactorMethod, sign_in_sha256: bytes | None
) -> PortalError | None:
    """Return why codes are refused now, or None."""
    if sign_in_sha256 is not None:
        failures = factor_store.count_failures_of_sign_in(session, user_id, sign_in_sha256)
        if failures >= MAX_FAILURES_OF_SIGN_IN:
            return SignInExpired()
    wait_s = max(
        factor_store.failure_wait_s(session, user_id, method, max_failures=most, window=window)
        for most, window in _FAILURE_LIMITS
    )
    return SecondFactorLocked(seconds=math.ceil(wait_s)) if wait_s > 0 else None


def _note_failure(
    session: Session, user: UserRow, method: FactorMethod, sign_in_sha256: bytes | None
) -> None:
    factor_store.add_failure(session, user.id, method, sign_in_sha256=sign_in_sha256)
    audit.record(session, AuditEvent.SIGN_IN_FAILED, None, user, method=method.value)


def _is_right(
    services: Services, session: Session, user: UserRow, code: str, method: FactorMethod
) -> bool:
    if method is FactorMethod.TOTP:
        row = factor_store.find_totp(session, user.id)
        if row is None or row.confirmed_at is None:
            return False
        return totp.accept_code(services, row, "".join(code.split()))
    digest = recovery_codes.digest(user.id, recovery_codes.normalise(code))
    if not factor_store.use_recovery_code(session, user.id, digest):
        return False
    left = factor_store.count_recovery_codes(session, user.id)
    notification_store.add_recovery_code(session, user.id, left=left)
    audit.record_own(session, AuditEvent.RECOVERY_CODE_USED, user, left=left)
    return True


def remove_all(services: Services, actor: User | None, user_id: UUID) -> None:
    """Remove all second factors of a user who lost them; the operator has no `actor`. Raises
    Forbidden, NotFound."""
    if actor is not None:
        require_admin(actor)
    with services.database.begin() as session:
        user = account_store.lock_user(session, user_id)
        if user is None or not factor_store.has_second_factor(session, user_id):
            raise NotFound
        factor_store.delete_all(session, user_id)
        audit.record(session, AuditEvent.SECOND_FACTOR_REMOVED, actor, user, method="all")


def must_enrol(services: Services, signed_in: SignedIn) -> bool:
    """Return whether this session has to set up a second factor before anything else."""
    if signed_in.token_kind is not TokenKind.ACCESS:
        return False
    if not is_required(services.settings, is_admin=signed_in.user.is_admin):
        return False
    methods = signed_in.session.methods if signed_in.session else ()
    if not _EXEMPT.isdisjoint(methods):
        return False
    with services.database.read() as session:
        return not factor_store.has_second_factor(session, signed_in.user.id)


def delete_expired(services: Services) -> None:
    """Delete failures that no longer count, and challenges that have expired."""
    with services.database.begin() as session:
        factor_store.delete_old(session, failures_before=datetime.now(UTC) - _MAX_WINDOW_LENGTH)
