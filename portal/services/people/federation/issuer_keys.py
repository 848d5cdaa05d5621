"""Public keys of an issuer: read from its address or a file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from portal.errors import InvalidSetting
from portal.services.people.federation.provider_documents import CachedDocument, download
from portal.settings import OutsideIssuerSettings

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey


@dataclass(frozen=True, slots=True)
class NamedKey:
    """A key, the algorithm it verifies, and its `kid`, which a PEM file does not have."""

    name: str | None
    algorithm: str
    key: PublicKey


@dataclass(frozen=True, slots=True)
class KeySet:
    keys: tuple[NamedKey, ...]

    def find(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """Return the key of that name. A token that names none is checked with the only one."""
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
        """Return the key that verifies a token; None if the issuer has none of that name. Raises
        IssuerUnavailable when that cannot be known."""
        found = self._document.find(lambda keys: keys.find(key_id, algorithm))
        return cast("PublicKey | None", found)


def parse_keys(content: bytes, algorithms: Collection[str]) -> KeySet:
    """Parse the public keys in a JWKS, or in one PEM, that fit an algorithm. Raises ValueError when
    there are none."""
    is_pem = content.lstrip().startswith(b"-----BEGIN")
    found = _read_pem(content, algorithms) if is_pem else _read_jwks(content, algorithms)
    if not found:
        raise ValueError("no public key that fits")
    return KeySet(tuple(found))


def _read_pem(content: bytes, algorithms: Collection[str]) -> list[NamedKey]:
    try:
        key = load_pem_public_key(content)
    except UnsupportedAlgorithm as error:
        raise ValueError("an unknown kind of key") from error
    if not isinstance(key, PublicKey):
        return []
    return [NamedKey(None, algorithm, key) for algorithm in algorithms]


def _read_jwks(content: bytes, algorithms: Collection[str]) -> list[NamedKey]:
    document = json.loads(content)
    listed = document.get("keys") if isinstance(document, dict) else None
    found: list[NamedKey] = []
    for entry in listed if isinstance(listed, list) else []:
        for algorithm in algorithms:
            key = _parse_key(entry, algorithm) if isinstance(entry, dict) else None
            if key is not None:
                found.append(NamedKey(entry.get("kid"), algorithm, key))
    return found


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
    """Return the keys of the outside issuer, or None without one. Raises InvalidSetting when the
    file has no key that fits."""
    if outside.issuer is None:
        return None
    algorithms = [outside.algorithm]
    if outside.key_file is not None:
        _check_file(outside.key_file, outside.algorithm)
        return IssuerKeys(outside.key_file.read_bytes, algorithms=algorithms)
    address = outside.jwks_url or ""
    return IssuerKeys(lambda: download(address), algorithms=algorithms)


def _check_file(path: Path, algorithm: str) -> None:
    try:
        parse_keys(path.read_bytes(), [algorithm])
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSetting(
            name="PORTAL_JWT__OUTSIDE__KEY_FILE",
            got=repr(str(path)),
            takes=f"a file with public keys for {algorithm}: a JWKS, or one key as PEM",
        ) from error
