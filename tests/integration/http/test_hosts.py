"""Host headers: the names that the portal accepts and uses in its links."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal import create_app
from portal.services import Services
from tests.conftest import Portal

PUBLIC = "https://portal.example.org/kb"
EVIL = "evil.example"


class Connection:
    """A connection to this address, as gunicorn passes it on."""

    def __init__(self, address: object) -> None:
        self.address = address

    def getsockname(self) -> object:
        return self.address


@pytest.fixture
def open_portal(make_services: Callable[..., Services]) -> Callable[..., tuple[Portal, Flask]]:
    def open_(**settings: Any) -> tuple[Portal, Flask]:
        services = make_services(**settings)
        portal = Portal.of(services)
        return portal, create_app(services)

    return open_


def status(client: FlaskClient, host: str, path: str = "/login", **environ: object) -> int:
    answer = client.get(path, headers={"Host": host}, environ_overrides=environ)
    return answer.status_code


def test_foreign_host_names_are_refused(client: FlaskClient) -> None:
    hosts = [
        *(
            EVIL,
            f"{EVIL}:8000",
            "localhost.evil.example",
            "evil-localhost",
            "6.6.6.6",
            "[2001:db8::1]",
        ),
        *("127.0.0.1.evil.example", "a b", "localhost,evil.example", "evil.example@localhost"),
        *("localhost:8000@evil.example", "localhost:99999", "", "localhost/evil", "127.0.0.2", "0"),
    ]
    assert {host: status(client, host) for host in hosts} == dict.fromkeys(hosts, 400)
    for path in ("/", "/api/auth/token", "/nowhere", "/metrics", "/static/x", "//login", "/docs"):
        assert status(client, EVIL, path) == 400, path


def test_own_host_names_are_accepted(client: FlaskClient) -> None:
    hosts = [
        "localhost",
        "LOCALHOST:8123",
        "localhost.",
        "127.0.0.1:1",
        "[::1]:8000",
        "a.localhost",
    ]
    assert {host: status(client, host) for host in hosts} == dict.fromkeys(hosts, 200)


def test_a_refusal_says_what_to_do(client: FlaskClient) -> None:
    answer = client.get("/api/jobs", headers={"Host": EVIL})
    assert answer.json["error"]["code"] == "untrusted_host"
    assert EVIL in answer.json["error"]["message"]
    assert "PORTAL_TRUSTED_HOSTS" in answer.json["error"]["message"]
    assert answer.json["error"]["request_id"]
    page = client.get("/login", headers={"Host": EVIL, "Accept-Language": "zh-CN"})
    assert page.mimetype == "text/html"
    assert "PORTAL_PUBLIC_URL" in page.text
    assert f"//{EVIL}" not in page.text


def test_address_of_the_connection_is_an_accepted_host(client: FlaskClient) -> None:
    here = {"gunicorn.socket": Connection(("192.0.2.7", 8000))}
    assert status(client, "192.0.2.7:8000", **here) == 200
    assert status(client, "192.0.2.8:8000", **here) == 400
    mapped = {"gunicorn.socket": Connection(("::ffff:192.0.2.7", 8000, 0, 0))}
    assert status(client, "192.0.2.7", **mapped) == 200
    # On a Unix socket gunicorn takes SERVER_NAME from the Host header.
    unix = {"gunicorn.socket": Connection("/run/portal.sock"), "SERVER_NAME": EVIL}
    assert status(client, EVIL, **unix) == 400


def test_health_answers_load_balancers_under_any_host_name(client: FlaskClient) -> None:
    assert status(client, "10.1.2.3:8000", "/health") == 200
    assert status(client, EVIL, "/health/live") in {200, 404}


def test_a_request_without_a_host_is_answered(client: FlaskClient) -> None:
    app = client.application
    with app.test_request_context("/login") as context:
        context.request.environ.pop("HTTP_HOST")
        assert app.preprocess_request() is None


def test_settings_add_accepted_host_names(open_portal: Callable[..., tuple[Portal, Flask]]) -> None:
    client = open_portal(
        trusted_hosts="Portal.Internal, .lab.example, 192.0.2.9", public_url=PUBLIC
    )[1].test_client()
    taken = [
        "portal.internal:8000",
        "a.b.lab.example",
        "192.0.2.9",
        "portal.example.org",
        "localhost",
    ]
    assert {host: status(client, host) for host in taken} == dict.fromkeys(taken, 200)
    refused = ["lab.example", "evillab.example", "sub.portal.internal", EVIL]
    assert {host: status(client, host) for host in refused} == dict.fromkeys(refused, 400)


def test_forwarded_host_is_read_from_a_trusted_proxy_only(
    open_portal: Callable[..., tuple[Portal, Flask]],
) -> None:
    headers = {"Host": "localhost", "X-Forwarded-Host": EVIL}
    alone = open_portal()[1].test_client()
    assert alone.get("/login", headers=headers).status_code == 200
    behind = open_portal(trusted_proxies=1, public_url=PUBLIC)[1].test_client()
    assert behind.get("/login", headers=headers).status_code == 400
    headers["X-Forwarded-Host"] = "portal.example.org"
    assert behind.get("/login", headers=headers).status_code == 200


def invitation_link(portal: Portal, app: Flask, **headers: str) -> str:
    client, headers = app.test_client(), portal.headers() | headers
    assert client.post("/admin/invitations", headers=headers).status_code == 303
    found = re.search(r'value="([^"]*/invite/[^"]+)"', client.get("/admin", headers=headers).text)
    assert found is not None
    return found[1]


def test_invitation_link_begins_with_the_public_address(
    open_portal: Callable[..., tuple[Portal, Flask]],
) -> None:
    portal, app = open_portal(public_url=PUBLIC)
    assert invitation_link(portal, app).startswith(f"{PUBLIC}/invite/")
    portal, app = open_portal(public_url=PUBLIC, trusted_proxies=1)
    link = invitation_link(portal, app, **{"X-Forwarded-Prefix": "/kb"})
    assert link.startswith(f"{PUBLIC}/invite/")


def test_links_without_a_public_url_use_the_requested_address(
    open_portal: Callable[..., tuple[Portal, Flask]],
) -> None:
    portal, app = open_portal()
    link = invitation_link(portal, app, Host="127.0.0.1:8123")
    assert link.startswith("http://127.0.0.1:8123/invite/")
    answer = app.test_client().post("/admin/invitations", headers=portal.headers() | {"Host": EVIL})
    assert answer.status_code == 400
    assert "/invite/" not in answer.text
