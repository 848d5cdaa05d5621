"""Portals that accept tokens of an outside issuer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from portal.services import Services
from portal.services.people.federation import outside_accounts
from tests.conftest import Portal
from tests.factories.servers.issuer import AUDIENCE, ISSUER, JwksServer, jwks_server
from tests.integration.people.outside_tokens.asking import MakePortal


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
