"""`portal mcp --http`: tokens, host names and signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from uuid import uuid4

import pytest
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.people import TokenKind
from portal.services import Services
from portal.services.documents import private_reads
from portal.services.people import tokens
from tests.conftest import Portal
from tests.factories.uploads import run_apart

pytestmark = pytest.mark.mcp
pytest.importorskip("mcp", reason="not installed: ./run setup --mcp")
httpx2 = pytest.importorskip("httpx2")

from mcp.server.transport_security import TransportSecuritySettings  # noqa: E402

from portal.integrations.mcp import serving  # noqa: E402
from tests.factories.servers.mcp import PUBLIC_URL, http_process  # noqa: E402
from tests.integration.mcp.visiting import reading_token  # noqa: E402

HEADERS = {"Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def post(url: str, token: str | None, **headers: str) -> httpx2.Response:
    authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.post(url, json=LIST, headers=HEADERS | authorization | headers)


def test_http_without_a_good_token_is_401(portal: Portal, http_url: str) -> None:
    token = portal.token(portal.admin)
    assert post(http_url, token).status_code == 200
    with portal.services.database.begin() as session:
        # A refresh token is not valid for calls.
        renewing = tokens.issue(
            portal.services,
            session,
            user_id=portal.admin.id,
            kind=TokenKind.REFRESH,
            ttl_s=600,
            family_id=uuid4(),
        )
    for wrong in (None, "x", token[:-3] + "abc", renewing):
        answer = post(http_url, wrong)
        assert answer.status_code == 401, wrong
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    tokens.revoke(portal.services, tokens.authenticate(portal.services, token), token)
    assert post(http_url, token).status_code == 401


def test_fetches_by_administrators_are_in_the_audit_log_with_an_address(
    portal: Portal, http_url: str
) -> None:
    mei = portal.user("mei")
    secret = portal.add("A private plan.", owner=mei, visibility=Visibility.PRIVATE)
    with portal.services.database.begin() as session:
        chosen = f"SELECT id FROM document_chunks WHERE document_id = '{secret.id}'"
        chunk_id = session.execute(text(chosen)).scalar_one()
    call = {"name": "fetch", "arguments": {"id": str(chunk_id)}}
    body = LIST | {"method": "tools/call", "params": call}
    headers = HEADERS | {"Authorization": f"Bearer {portal.token(portal.admin)}"}
    assert "A private plan." in httpx2.post(http_url, json=body, headers=headers).text
    (entry,) = private_reads.list_reads(portal.services, mei, secret.id)
    assert (entry.event, entry.source, entry.address) == (
        "private_document_opened",
        "web",
        "127.0.0.1",
    )


def test_client_address_comes_only_from_trusted_proxies(
    portal: Portal, environment: dict[str, str]
) -> None:
    mei = portal.user("mei")
    claimed = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
    for proxies, address in (("0", "127.0.0.1"), ("1", "198.51.100.7")):
        secret = portal.add(f"A private plan {proxies}.", owner=mei, visibility=Visibility.PRIVATE)
        call = {"name": "search", "arguments": {"query": f"private plan {proxies}"}}
        body = LIST | {"method": "tools/call", "params": call}
        headers = HEADERS | claimed | {"Authorization": f"Bearer {portal.token(portal.admin)}"}
        with http_process(environment | {"PORTAL_TRUSTED_PROXIES": proxies}) as (url, _process):
            assert httpx2.post(url, json=body, headers=headers).status_code == 200
        reads = private_reads.list_reads(portal.services, mei, secret.id)
        assert reads[0].address == address


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_not_allowed(portal: Portal, http_url: str, method: str) -> None:
    headers = HEADERS | portal.headers()
    answer = httpx2.request(method, http_url, headers=headers, timeout=10)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_http_answers_only_to_its_own_host_names(
    portal: Portal, environment: dict[str, str]
) -> None:
    token = reading_token(portal)
    with http_process(environment, "--allowed-host", "tools.example.org") as (url, _process):
        for good in ("localhost:1", "tools.example.org", "portal.example.org", "127.0.0.1"):
            assert post(url, token, Host=good).status_code == 200, good
        for wrong in ("evil.example.org", "portal.example.org.evil.com", "localhost.evil.com:80"):
            assert post(url, token, Host=wrong).status_code == 421, wrong
        assert post(url, token, Origin="https://evil.example.org").status_code == 403
        assert post(url, token, Origin=PUBLIC_URL).status_code == 200


def test_http_answers_503_without_a_database_and_401_for_a_wrong_token(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    away = make_services(database_url="postgresql://nobody@127.0.0.1:1/none")
    app = serving.web_app(away, TransportSecuritySettings())
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)

    async def call() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.post("/mcp", json=LIST, headers=portal.headers())

    answer = run_apart(lambda: asyncio.run(call()))
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "database_unavailable"
    assert int(answer.headers["Retry-After"]) > 0


def test_http_stops_at_a_signal_with_a_client_connected(
    portal: Portal, environment: dict[str, str]
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with http_process(environment) as (url, process), httpx2.Client() as client:
            token = {"Authorization": f"Bearer {reading_token(portal)}"}
            assert client.post(url, json=LIST, headers=HEADERS | token).status_code == 200
            process.send_signal(number)
            assert process.wait(20) == 0
