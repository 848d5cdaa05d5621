"""Passkeys (WebAuthn): register them, and sign in with one, as second factor or alone.

The browser's part is in static/js/passkeys.js. py_webauthn checks origin, site, challenge,
signature and counter.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from uuid import UUID

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    parse_authentication_credential_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from portal.domain.people import User, VerifiedUser
from portal.domain.people.second_factors import MAX_PASSKEYS, Challenge, RelyingParty
from portal.errors import Conflict, PasskeyRefused, existing
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people import accounts
from portal.services.people.second_factors import recovery_codes
from portal.store.models import PasskeyRow
from portal.store.people import accounts as account_store
from portal.store.people import second_factors as factor_store

SITE_NAME = "Knowledge portal"
_CHALLENGE_BYTES = 32
_CHALLENGE_LIFE = timedelta(minutes=5)

Result = TypeVar("Result")


def begin_registration(services: Services, user: User, site: RelyingParty) -> tuple[str, Challenge]:
    """Return the options for `navigator.credentials.create()` as JSON, and their challenge."""
    challenge = _challenge(user.id)
    with services.database.read() as session:
        known = factor_store.list_passkeys(session, user.id)
    options = generate_registration_options(
        rp_id=site.id,
        rp_name=SITE_NAME,
        user_id=user.id.bytes,
        user_name=user.name,
        challenge=challenge.value,
        authenticator_selection=AuthenticatorSelectionCriteria(
            # Preferred, not required: a plain security key is still a good second factor.
            resident_key=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.PREFERRED,
        ),
        exclude_credentials=[_descriptor(row) for row in known],
    )
    return options_to_json(options), challenge


def finish_registration(
    services: Services,
    user: User,
    site: RelyingParty,
    *,
    challenge: Challenge,
    credential: str,
    name: str,
) -> tuple[str, ...]:
    """Store a new passkey. Return new recovery codes, or none if the user has some. Raises
    PasskeyRefused, InvalidInput, Conflict."""
    name = accounts.check_name(name)
    _spend(services, challenge, user.id)
    parsed = _run_checked(lambda: parse_registration_credential_json(credential))
    verified = _run_checked(
        lambda: verify_registration_response(
            credential=parsed,
            expected_challenge=challenge.value,
            expected_rp_id=site.id,
            expected_origin=site.origin,
        )
    )
    with services.database.begin() as session:
        account_store.lock_user(session, user.id)
        if len(factor_store.list_passkeys(session, user.id)) >= MAX_PASSKEYS:
            raise Conflict("an account has at most %(max)s passkeys", max=MAX_PASSKEYS)
        added = factor_store.add_passkey(
            session,
            user_id=user.id,
            name=name,
            rp_id=site.id,
            credential_id=verified.credential_id,
            public_key=verified.credential_public_key,
            sign_count=verified.sign_count,
            transports=[transport.value for transport in parsed.response.transports or ()],
        )
        if added is None:
            raise Conflict("this passkey is registered already")
        audit.record_own(session, AuditEvent.SECOND_FACTOR_ADDED, user, method="passkey", name=name)
        return recovery_codes.ensure(session, user.id)


def begin_sign_in(
    services: Services, site: RelyingParty, user_id: UUID | None
) -> tuple[str, Challenge]:
    """Return the options for `navigator.credentials.get()` as JSON, and their challenge. Without a
    user the passkey is the only factor, so the authenticator has to verify the user."""
    challenge = _challenge(user_id)
    known: list[PasskeyRow] = []
    if user_id is not None:
        with services.database.read() as session:
            known = factor_store.list_passkeys(session, user_id)
    options = generate_authentication_options(
        rp_id=site.id,
        challenge=challenge.value,
        allow_credentials=[_descriptor(row) for row in known if row.rp_id == site.id],
        user_verification=(
            UserVerificationRequirement.REQUIRED
            if user_id is None
            else UserVerificationRequirement.PREFERRED
        ),
    )
    return options_to_json(options), challenge


def finish_sign_in(
    services: Services,
    site: RelyingParty,
    *,
    challenge: Challenge,
    credential: str,
    user_id: UUID | None,
) -> VerifiedUser:
    """Return the user whose passkey answered the challenge. `user_id` is the user who has already
    entered a password, if any. Raises PasskeyRefused."""
    _spend(services, challenge, user_id)
    parsed = _run_checked(lambda: parse_authentication_credential_json(credential))
    with services.database.begin() as session:
        row = factor_store.find_passkey(session, parsed.raw_id)
        user = account_store.get_user(session, row.user_id) if row else None
        if row is None or user is None or user_id not in {None, user.id}:
            raise PasskeyRefused
        try:
            _verify(row, site, challenge, parsed, is_alone=user_id is None)
            if user.disabled_at is None:
                return accounts.to_verified_user(user)
        except PasskeyRefused:
            pass
        audit.record(session, AuditEvent.SIGN_IN_FAILED, None, user, method="passkey")
    # Raised outside the transaction, so that the failure stays in the audit log.
    raise PasskeyRefused


def _verify(
    row: PasskeyRow,
    site: RelyingParty,
    challenge: Challenge,
    credential: AuthenticationCredential,
    *,
    is_alone: bool,
) -> None:
    handle = credential.response.user_handle
    # A discoverable credential says whose it is; other credentials may leave it out.
    if (handle is None and is_alone) or (handle is not None and handle != row.user_id.bytes):
        raise PasskeyRefused
    verified = _run_checked(
        lambda: verify_authentication_response(
            credential=credential,
            expected_challenge=challenge.value,
            expected_rp_id=site.id,
            expected_origin=site.origin,
            credential_public_key=row.public_key,
            credential_current_sign_count=row.sign_count,
            require_user_verification=is_alone,
        )
    )
    row.sign_count, row.last_used_at = verified.new_sign_count, datetime.now(UTC)


def remove(services: Services, user: User, passkey_id: UUID) -> None:
    """Remove one of the user's passkeys. Raises NotFound, also for another user's."""
    with services.database.begin() as session:
        account_store.lock_user(session, user.id)
        name = existing(
            factor_store.delete_passkey(session, user_id=user.id, passkey_id=passkey_id)
        )
        audit.record_own(
            session, AuditEvent.SECOND_FACTOR_REMOVED, user, method="passkey", name=name
        )
        recovery_codes.delete_if_unneeded(session, user.id)


def _challenge(user_id: UUID | None) -> Challenge:
    value = secrets.token_bytes(_CHALLENGE_BYTES)
    return Challenge(value, user_id, datetime.now(UTC) + _CHALLENGE_LIFE)


def _spend(services: Services, challenge: Challenge, user_id: UUID | None) -> None:
    """Spend a challenge before its answer is checked. Raises PasskeyRefused."""
    if challenge.user_id != user_id or challenge.expires_at < datetime.now(UTC):
        raise PasskeyRefused
    digest = hashlib.sha256(challenge.value).digest()
    with services.database.begin() as session:
        is_new = factor_store.spend_challenge(session, digest, expires_at=challenge.expires_at)
    if not is_new:
        raise PasskeyRefused


def _run_checked(step: Callable[[], Result]) -> Result:
    """Run a step of the library on bytes that a client sent. Raises PasskeyRefused."""
    try:
        return step()
    except Exception as error:
        raise PasskeyRefused from error


def _descriptor(row: PasskeyRow) -> PublicKeyCredentialDescriptor:
    known = {transport.value for transport in AuthenticatorTransport}
    transports = [AuthenticatorTransport(name) for name in row.transports if name in known]
    return PublicKeyCredentialDescriptor(id=row.credential_id, transports=transports or None)
