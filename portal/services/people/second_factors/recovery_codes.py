"""Recovery codes: ten at a time, each good for one sign-in."""

from __future__ import annotations

import base64
import hashlib
import secrets
from uuid import UUID

from portal.domain.people import User
from portal.errors import Conflict
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.store.people import accounts as account_store
from portal.store.people import second_factors as factor_store
from portal.store.session import Session

COUNT = 10
_BYTES = 10
CHARACTERS = 16
"""In base32: 80 bits, so that a plain digest is enough to store."""
_GROUP = 4


def make(session: Session, user_id: UUID) -> tuple[str, ...]:
    """Replace all of a user's codes and return the new ones, which are stored as digests only."""
    codes = [_spell(secrets.token_bytes(_BYTES)) for _ in range(COUNT)]
    factor_store.replace_recovery_codes(
        session, user_id, [digest(user_id, normalise(code)) for code in codes]
    )
    return tuple(codes)


def ensure(session: Session, user_id: UUID) -> tuple[str, ...]:
    """Create codes for a user who has none left and return them; return none otherwise."""
    if factor_store.count_recovery_codes(session, user_id):
        return ()
    return make(session, user_id)


def delete_if_unneeded(session: Session, user_id: UUID) -> None:
    """Delete the codes of a user whose last second factor was removed."""
    if not factor_store.has_second_factor(session, user_id):
        factor_store.delete_recovery_codes(session, user_id)


def replace(services: Services, user: User) -> tuple[str, ...]:
    """Create ten new codes; the old ones stop working. Raises Conflict without a second factor."""
    with services.database.begin() as session:
        account_store.lock_user(session, user.id)
        if not factor_store.has_second_factor(session, user.id):
            raise Conflict("recovery codes need an authenticator app or a passkey first")
        audit.record_own(session, AuditEvent.SECOND_FACTOR_ADDED, user, method="recovery_code")
        return make(session, user.id)


def normalise(code: str) -> str:
    """Return a code as it is digested: without the hyphens, spaces and case that users change."""
    return "".join(character for character in code.upper() if character.isalnum())


def digest(user_id: UUID, code: str) -> bytes:
    return hashlib.sha256(user_id.bytes + code.encode("utf-8", "surrogatepass")).digest()


def _spell(secret: bytes) -> str:
    text = base64.b32encode(secret).decode().lower()
    return "-".join(text[start : start + _GROUP] for start in range(0, CHARACTERS, _GROUP))
