"""A WebAuthn authenticator in software, which acts as the browser and the security key."""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


def encode(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def decode(value: str) -> bytes:
    return urlsafe_b64decode(value + "=" * (-len(value) % 4))


@dataclass
class Authenticator:
    """Holds one credential. With `verifies_user` it asks for a PIN or a fingerprint. Changing an
    attribute makes it, or the browser in front of it, lie."""

    origin: str = "http://localhost"
    rp_id: str = "localhost"
    verifies_user: bool = True
    sign_count: int = 1
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    user_handle: bytes = b""

    def create(self, options: dict[str, Any]) -> str:
        """Answer the options of a registration."""
        self.user_handle = decode(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        public_key = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        credential = struct.pack(">16sH", bytes(16), len(self.credential_id))
        credential += self.credential_id + public_key
        data = self._authenticator_data(_ATTESTED) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client_data = self._client_data("webauthn.create", options["challenge"])
        return self._credential(
            clientDataJSON=encode(client_data),
            attestationObject=encode(attestation),
            transports=["internal"],
        )

    def get(self, options: dict[str, Any]) -> str:
        """Answer the options of a sign-in."""
        self.sign_count += 1
        data = self._authenticator_data()
        client_data = self._client_data("webauthn.get", options["challenge"])
        signed = data + hashlib.sha256(client_data).digest()
        return self._credential(
            clientDataJSON=encode(client_data),
            authenticatorData=encode(data),
            signature=encode(self.key.sign(signed, ec.ECDSA(SHA256()))),
            userHandle=encode(self.user_handle),
        )

    def _authenticator_data(self, flags: int = 0) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies_user else 0)
        rp_id_hash = hashlib.sha256(self.rp_id.encode()).digest()
        return rp_id_hash + struct.pack(">BI", flags, self.sign_count)

    def _client_data(self, kind: str, challenge: str) -> bytes:
        data = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(data).encode()

    def _credential(self, **response: object) -> str:
        own_id = encode(self.credential_id)
        return json.dumps(
            {"id": own_id, "rawId": own_id, "type": "public-key", "response": response}
        )
