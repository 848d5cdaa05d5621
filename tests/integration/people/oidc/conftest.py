"""Portals with sign-in through an OpenID provider that runs beside the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask

from portal.services import Services
from tests.conftest import Portal
from tests.factories.browser import Browser
from tests.factories.servers.oidc import (
    CLIENT,
    SECRET,
    LyingProvider,
    Provider,
    lying_provider,
    whole_provider,
)

MakePortal = Callable[..., Portal]
MakeBrowser = Callable[..., Browser]


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with whole_provider() as running:
        yield running


@pytest.fixture
def liar() -> Iterator[LyingProvider]:
    with lying_provider() as running:
        yield running


@pytest.fixture
def make_portal(make_services: Callable[..., Services]) -> MakePortal:
    """Return a function that makes a portal with the provider `issuer` and settings of `oidc`."""

    def make(issuer: str, **oidc: Any) -> Portal:
        given = {"issuer": issuer, "client_id": CLIENT, "client_secret": SECRET}
        return Portal.of(make_services(oidc=given | oidc))

    return make


_apps: list[tuple[Services, Flask]] = []


def app_of(portal: Portal) -> Flask:
    """Return the portal's application, cached because creating it is slow."""
    for services, app in _apps:
        if services is portal.services:
            return app
    app = portal.app()
    _apps[:] = [(portal.services, app)]
    return app


def browser_of(portal: Portal, **more: Any) -> Browser:
    return Browser(app_of(portal), **more)
