"""Public keys of an issuer, read from its address."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from portal.services.people.federation.provider_documents import CachedDocument, download
from portal.settings import OutsideIssuerSettings

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key, the algorithm it verifies, and its `kid`."""

    name: str | None
    algorithm: str
    key: PublicKey


@dataclass(frozen=True, slots=True)
class KeySet:
    keys: tuple[NamedKey, ...]

    def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """Return the key with this id. A token without a key id is checked with the only key."""
        fitting = [key for key in self.keys if key.algorithm == algorithm]
        if key_id is None or all(key.name is None for key in fitting):
            return fitting[0].key if len(fitting) == 1 else None
        return next((key.key for key in fitting if key.name == key_id), None)


class IssuerKeys:
    """The cached keys of one issuer. PyJWT's own PyJWKClient is not used: it holds a lock while it
    downloads, drops known keys when the issuer cannot be reached, and reads without a limit."""

    def __init__(
        self,
        read: Callable[[], bytes],
        *,
        algorithms: Collection[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._document = CachedDocument(
            lambda: parse_keys(read(), algorithms), name="issuer-keys", clock=clock
        )

    def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """Return the key that verifies a token; None if the issuer has no such key. Raises
        IssuerUnavailable if that cannot be known."""
        found = self._document.find(lambda keys: keys.find(key_id, algorithm))
        return cast("PublicKey | None", found)


def parse_keys(content: bytes, algorithms: Collection[str]) -> KeySet:
    """Parse the public keys in a JWKS that fit an algorithm. Raises ValueError when there are
    none."""
    document = json.loads(content)
    listed = document.get("keys") if isinstance(document, dict) else None
    found = [
        NamedKey(entry.get("kid"), algorithm, key)
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict)
        for algorithm in algorithms
        if (key := _parse_key(entry, algorithm)) is not None
    ]
    if not found:
        raise ValueError("no public key that fits")
    return KeySet(tuple(found))


def _parse_key(entry: dict[str, object], algorithm: str) -> PublicKey | None:
    """Return a key that may verify this algorithm; None for one published with its private half,
    one that is too short, and one for another purpose."""
    if entry.get("use", "sig") != "sig" or entry.get("alg", algorithm) != algorithm:
        return None
    try:
        parsed = PyJWK(entry, algorithm=algorithm)
    except (PyJWKError, InvalidKeyError, ValueError, TypeError):
        return None
    key = parsed.key
    if not isinstance(key, PublicKey) or parsed.Algorithm.check_key_length(key):
        return None
    return key


def create_issuer_keys(outside: OutsideIssuerSettings) -> IssuerKeys | None:
    """Return the keys of the outside issuer, or None without one."""
    if outside.issuer is None:
        return None
    address = outside.jwks_url or ""
    return IssuerKeys(lambda: download(address), algorithms=[outside.algorithm])
