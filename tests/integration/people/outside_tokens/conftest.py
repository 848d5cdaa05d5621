"""Portals that accept tokens of an outside issuer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.errors import InvalidToken, PortalError
from portal.services import Services
from portal.services.people import tokens
from portal.services.people.federation import outside_accounts
from tests.conftest import Portal
from tests.factories.servers.issuer import AUDIENCE, ISSUER, JwksServer, jwks_server


@pytest.fixture
def server() -> Iterator[JwksServer]:
    with jwks_server() as running:
        yield running


@pytest.fixture
def make_portal(make_services: Callable[..., Services], server: JwksServer) -> MakePortal:
    """Return a function that makes a portal accepting tokens of the outside issuer."""

    def make(**outside: Any) -> Portal:
        given = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"{server.url}/keys"}
        return Portal.of(make_services(jwt={"outside": given | outside}))

    return make


@pytest.fixture
def portal(make_portal: MakePortal) -> Portal:
    """Return a portal with ada, whose subject at the issuer is 7f3a."""
    portal = make_portal()
    portal.user("ada")
    outside_accounts.link(portal.services, name="ada", subject="7f3a")
    return portal


DOCUMENTS = "/api/knowledge/documents"


MakePortal = Callable[..., Portal]


def client_of(portal: Portal) -> FlaskClient:
    return portal.app().test_client()


def status(client: FlaskClient, token: str, path: str = DOCUMENTS, method: str = "GET") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    body = {} if method == "POST" else None
    return client.open(path, method=method, headers=headers, json=body).status_code


def outcome(services: Services, token: str) -> object:
    """Return the type of error that a token causes, or the user's name."""
    try:
        return tokens.authenticate(services, token).user.name
    except PortalError as error:
        return InvalidToken if isinstance(error, InvalidToken) else type(error)
