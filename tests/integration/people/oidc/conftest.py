"""Portals with sign-in through an OpenID provider that runs beside the tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text
from werkzeug.test import TestResponse

from portal.services import Services
from portal.services.people.federation import outside_accounts
from tests.conftest import Portal
from tests.factories.browser import Browser
from tests.factories.servers.issuer import claims, sign
from tests.factories.servers.oidc import (
    CLIENT,
    SECRET,
    LyingProvider,
    Provider,
    lying_provider,
    path,
    query,
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


_ERROR = re.compile(r'data-testid="form-error">.*?<span>(.*?)</span>', re.DOTALL)


def begin(browser: Browser, after: str | None = None) -> str:
    """Follow the sign-in page's button; return the address at the provider."""
    answer = browser.get("/oidc/sign-in" + (f"?next={after}" if after else ""))
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def sign_in(browser: Browser, provider: Provider, subject: str) -> TestResponse:
    return browser.get(path(provider.approve(begin(browser), subject)))


def callback(browser: Browser, begun: str, **changed: str | None) -> TestResponse:
    """Return from the lying provider with the given parameters."""
    given = {"state": query(begun)["state"], "code": "a-code"} | changed
    sent = {name: value for name, value in given.items() if value is not None}
    from urllib.parse import urlencode

    return browser.get(f"/oidc/callback?{urlencode(sent)}")


def id_token(liar: LyingProvider, begun: str, **changed: Any) -> str:
    """Return a valid id token for a begun sign-in; None omits a claim."""
    good = {"iss": liar.issuer, "aud": CLIENT, "nonce": query(begun)["nonce"]}
    return sign(claims(**(good | changed)))


def name_of(browser: Browser) -> str | None:
    """Return the name of the browser's user."""
    answer = browser.get("/account")
    found = re.search(r'<p class="lead">([^<·]+)', answer.text)
    return found[1].strip() if answer.status_code == 200 and found else None


def error_of(answer: TestResponse) -> str:
    found = _ERROR.search(answer.text)
    return unescape(found[1]) if found else ""


def link(portal: Portal, name: str, subject: str) -> None:
    outside_accounts.link(portal.services, name=name, subject=subject)


def events(portal: Portal) -> list[str]:
    with portal.services.database.begin() as session:
        rows = session.execute(text("SELECT event FROM audit_log ORDER BY created_at, id"))
        return [row.event for row in rows]
