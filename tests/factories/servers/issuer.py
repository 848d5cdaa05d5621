"""An outside token issuer: its keys and the server that publishes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.factories.servers import running

ISSUER = "https://sign-in.example.org/realms/office"
AUDIENCE = "portal-api"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the key of this name, cached because generating one is slow."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str | None, **more: Any) -> Any:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    entry = algorithm.to_jwk(key.public_key(), as_dict=True) | {"use": "sig"}
    return entry | ({"kid": kid} if kid else {}) | more


def claims(subject: str = "7f3a", **changed: Any) -> dict[str, Any]:
    """Return the claims of a valid token; None omits one."""
    now = int(datetime.now(UTC).timestamp())
    body = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 300}
    return {name: value for name, value in (body | changed).items() if value is not None}


def sign(
    body: dict[str, Any], key: Any = None, *, algorithm: str = "RS256", kid: str | None = "one",
    headers: dict[str, Any] | None = None,
) -> str:  # fmt: skip
    named = {"kid": kid} if kid is not None else {}
    return jwt.encode(
        body, key or rsa_key("one"), algorithm=algorithm, headers={**named, **(headers or {})}
    )


def sign_by_hand(body: dict[str, Any], secret: bytes, kid: str | None = "one") -> str:
    """Sign with HS256 without the library, which refuses to do so with a public key."""

    def part(content: bytes) -> bytes:
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    header = {"alg": "HS256", "typ": "JWT"} | ({"kid": kid} if kid else {})
    signed = part(json.dumps(header).encode()) + b"." + part(json.dumps(body).encode())
    return (signed + b"." + part(hmac.new(secret, signed, hashlib.sha256).digest())).decode()


@dataclass
class JwksServer:
    """Answers with `status` and `body`; while `is_held` is set, requests wait for `release`."""

    url: str = ""
    status: int = 200
    body: bytes = b""
    requests: list[str] = field(default_factory=list)
    is_held: bool = False
    release: threading.Event = field(default_factory=threading.Event)

    def publish(self, *keys: Any) -> None:
        self.body = json.dumps({"keys": list(keys)}).encode()


@contextmanager
def jwks_server() -> Iterator[JwksServer]:
    server = JwksServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(self.path)
            if server.is_held:
                server.release.wait(30)
            self.send_response(server.status)
            if server.status in {301, 302, 307}:
                self.send_header("Location", f"{server.url}/elsewhere")
            self.send_header("Content-Length", str(len(server.body)))
            self.end_headers()
            self.wfile.write(server.body)

        def log_message(self, *_: object) -> None:
            """Print nothing between the lines of the tests."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    server.publish(jwk(rsa_key("one"), "one"))
    with running(http):
        try:
            yield server
        finally:
            server.release.set()
