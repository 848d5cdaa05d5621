"""Public keys of the outside issuer: read from its address or a file, and kept."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from portal.errors import InvalidSetting, IssuerUnavailable
from portal.settings import OutsideIssuerSettings

# Keys are read again after this long, so that one that was withdrawn ends.
_FRESH_S = 300.0
# While they cannot be read, known ones count this long.
_LASTING_S = 24 * 3600.0
# Between two readings for keys that are not known: made-up names must not tire the issuer.
_PAUSE_S = 60.0
_PAUSE_WITHOUT_KEYS_S = 5.0
_PATIENCE_S = 2.0
_MOST_BYTES = 256 * 1024

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey
NamedKey = tuple[str | None, PublicKey]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys with their names, read at one time; a key of a file of its own has none."""

    keys: tuple[NamedKey, ...]
    read_at: float
    is_single: bool

    def find(self, key_id: str | None) -> PublicKey | None:
        """The key of that name. A token that names none is checked with the only one."""
        if self.is_single or key_id is None:
            return self.keys[0][1] if len(self.keys) == 1 else None
        return next((key for name, key in self.keys if name == key_id), None)


class IssuerKeys:
    """Safe for threads. Reading happens in a thread of its own, so that no request waits longer
    than two seconds, wherever it hangs; and none waits at all whose key is known. `clock` is
    monotonic seconds."""

    def __init__(
        self,
        read: Callable[[], bytes],
        *,
        algorithm: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._algorithm = algorithm
        self._clock = clock
        self._lock = threading.Lock()
        self._known: KeySet | None = None
        self._reading: threading.Event | None = None
        self._not_before = 0.0
        self._has_failed = False

    def find(self, key_id: str | None) -> PublicKey | None:
        """The key that a token is to be checked with; None: the issuer has none of that name.
        Raises IssuerUnavailable when that cannot be known."""
        known = self._lasting()
        key = known.find(key_id) if known else None
        if known is not None and key is not None:
            if self._clock() - known.read_at > _FRESH_S:
                self._begin_reading()
            return key
        reading = self._begin_reading()
        is_over = reading is None or reading.wait(_PATIENCE_S)
        known = self._lasting()
        key = known.find(key_id) if known else None
        if key is None and (known is None or self._has_failed or not is_over):
            raise IssuerUnavailable
        return key

    def _lasting(self) -> KeySet | None:
        known = self._known
        if known is None or self._clock() - known.read_at > _LASTING_S:
            return None
        return known

    def _begin_reading(self) -> threading.Event | None:
        """What says that the reading under way is over; None when it is too soon for another."""
        with self._lock:
            if self._reading is not None:
                return self._reading
            if self._clock() < self._not_before:
                return None
            self._reading = threading.Event()
            threading.Thread(target=self._refresh, name="issuer-keys", daemon=True).start()
            return self._reading

    def _refresh(self) -> None:
        found: KeySet | None = None
        try:
            found = parse_keys(self._read(), self._algorithm, read_at=self._clock())
        except Exception as error:  # noqa: BLE001 - whoever waits would wait in vain
            log.warning("issuer_keys_unreadable", error_type=type(error).__name__)
        with self._lock:
            self._known = found or self._known
            self._has_failed = found is None
            pause_s = _PAUSE_S if self._known else _PAUSE_WITHOUT_KEYS_S
            self._not_before = self._clock() + pause_s
            if self._reading is not None:
                self._reading.set()
            self._reading = None


def parse_keys(content: bytes, algorithm: str, *, read_at: float = 0.0) -> KeySet:
    """The public keys in a JWKS, or in one PEM, that fit `algorithm`. Raises ValueError when there
    are none."""
    is_single = content.lstrip().startswith(b"-----BEGIN")
    found = _read_pem(content) if is_single else _read_jwks(content, algorithm)
    if not found:
        raise ValueError("no public key that fits")
    return KeySet(tuple(found), read_at, is_single)


def _read_pem(content: bytes) -> list[NamedKey]:
    try:
        key = load_pem_public_key(content)
    except UnsupportedAlgorithm as error:
        raise ValueError("a kind of key that nobody knows here") from error
    return [(None, key)] if isinstance(key, PublicKey) else []


def _read_jwks(content: bytes, algorithm: str) -> list[NamedKey]:
    document = json.loads(content)
    listed = document.get("keys") if isinstance(document, dict) else None
    found: list[NamedKey] = []
    for entry in listed if isinstance(listed, list) else []:
        key = _parse_key(entry, algorithm) if isinstance(entry, dict) else None
        if key is not None:
            found.append((entry.get("kid"), key))
    return found


def _parse_key(entry: dict[str, object], algorithm: str) -> PublicKey | None:
    """A key that may check signatures of this algorithm. One that was published with its private
    half is nobody's any more, and one that is too short is soon somebody else's."""
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
    """None without an outside issuer. Raises InvalidSetting when the file has no key that fits."""
    if outside.issuer is None:
        return None
    if outside.key_file is not None:
        _check_file(outside.key_file, outside.algorithm)
        return IssuerKeys(outside.key_file.read_bytes, algorithm=outside.algorithm)
    address = outside.jwks_url or ""
    return IssuerKeys(lambda: _download(address), algorithm=outside.algorithm)


def _check_file(path: Path, algorithm: str) -> None:
    try:
        parse_keys(path.read_bytes(), algorithm)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSetting(
            name="PORTAL_JWT__OUTSIDE__KEY_FILE",
            got=repr(str(path)),
            takes=f"a file with public keys for {algorithm}: a JWKS, or one key as PEM",
        ) from error


def _download(address: str) -> bytes:
    """Redirects are not followed: only the address in the settings says whose signature counts."""
    deadline = time.monotonic() + _PATIENCE_S
    parts = bytearray()
    with httpx.stream("GET", address, timeout=_PATIENCE_S, follow_redirects=False) as response:
        if response.status_code != httpx.codes.OK:
            raise ValueError(f"status {response.status_code}")
        for part in response.iter_bytes():
            parts += part
            if len(parts) > _MOST_BYTES or time.monotonic() > deadline:
                raise ValueError("too much, or too late")
    return bytes(parts)
