"""Encrypt secrets that the portal must read again, such as those of TOTP, and digest the others.

The key is derived from the portal's secret key. A copy of the database alone is of no use.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from portal.services import Services

# Part of every derived key: changing it makes stored values unreadable.
_PURPOSE = b"portal second factors v1"


class Unreadable(Exception):
    """The value was sealed with a key that the portal no longer has, or too long ago."""


def seal(services: Services, value: bytes) -> bytes:
    """Encrypt with the newest key."""
    return _box(services).encrypt(value)


def unseal(services: Services, sealed: bytes, *, max_age_s: int | None = None) -> bytes:
    """Decrypt with any key that the portal has. Raises Unreadable, also for what was sealed longer
    ago than `max_age_s`."""
    try:
        return _box(services).decrypt(sealed, max_age_s)
    except InvalidToken as error:
        raise Unreadable from error


def digest(secret: str) -> bytes:
    """Return the SHA-256 of a random secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _box(services: Services) -> MultiFernet:
    # The first key encrypts, each of them decrypts.
    return MultiFernet([Fernet(_derive(key)) for key in reversed(services.secret_keys)])


def _derive(secret_key: str) -> bytes:
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE)
    return base64.urlsafe_b64encode(kdf.derive(secret_key.encode()))
