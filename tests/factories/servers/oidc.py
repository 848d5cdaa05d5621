"""OpenID Connect providers on a loopback port: a complete one, and one that lies on request."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.factories.servers import running
from tests.factories.servers.issuer import jwk, rsa_key

CLIENT = "portal-client"
SECRET = "a client's secret"


@dataclass
class Provider:
    """`oidc-provider-mock`, and a user who submits its pages."""

    issuer: str
    client: httpx.Client

    def set_user(self, subject: str, **claims: Any) -> None:
        self.client.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    def approve(self, address: str, subject: str) -> str:
        """Sign in as `subject` at the address that the portal sent the browser to; return the
        address that the browser is sent back to."""
        assert address.startswith(f"{self.issuer}/oauth2/authorize?"), address
        answer = self.client.post(address, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]

    def deny(self, address: str) -> str:
        return self.client.post(address, data={"action": "deny"}).headers["Location"]


@contextmanager
def whole_provider() -> Iterator[Provider]:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # Authlib warns about an import that it will remove.
        warnings.simplefilter("ignore")
        patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
        from oidc_provider_mock import run_server_in_thread

        with run_server_in_thread() as server, httpx.Client() as client:
            yield Provider(f"http://localhost:{server.server_port}", client)


@dataclass
class LyingProvider:
    """Answers with what a test sets here. The token endpoint returns `id_token`."""

    issuer: str = ""
    discovery: dict[str, Any] = field(default_factory=dict)
    keys: list[Any] = field(default_factory=lambda: [jwk(rsa_key("one"), "one")])
    id_token: Any = None
    token_status: int = 200
    token_body: bytes | None = None
    requests: list[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=list)
    redirect: str | None = None

    def answer(self, path: str) -> tuple[int, bytes]:
        if path.endswith("/openid-configuration"):
            return 200, json.dumps(self._discovery()).encode()
        if path == "/keys":
            return 200, json.dumps({"keys": self.keys}).encode()
        if self.token_body is not None:
            return self.token_status, self.token_body
        body = {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token}
        return self.token_status, json.dumps(body).encode()

    def _discovery(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return {
            name: value for name, value in (found | self.discovery).items() if value is not None
        }


@contextmanager
def lying_provider() -> Iterator[LyingProvider]:
    provider = LyingProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            form = parse_qs(self.rfile.read(length).decode()) if length else {}
            sent = {name: values[0] for name, values in form.items()}
            provider.requests.append((self.path, sent, dict(self.headers)))
            status, body = provider.answer(self.path)
            if provider.redirect is not None:
                status, body = 302, b""
            self.send_response(status)
            if provider.redirect is not None:
                self.send_header("Location", provider.redirect)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that the base class looks for

        def log_message(self, *_: object) -> None:
            """Print nothing between the lines of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    with running(server):
        yield provider


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def path(address: str) -> str:
    """Return the path and query of an address, for a test client."""
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
