"""Signing out here and at the provider, and back-channel logout by the provider."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.servers.issuer import claims, rsa_key, sign
from tests.factories.servers.oidc import CLIENT, LyingProvider, Provider, query
from tests.integration.people.oidc.conftest import (
    MakePortal,
    app_of,
    begin,
    browser_of,
    callback,
    events,
    id_token,
    name_of,
    sign_in,
)

EVENT = {"http://schemas.openid.net/event/backchannel-logout": {}}


@pytest.fixture
def portal(make_portal: MakePortal, liar: LyingProvider) -> Portal:
    return make_portal(liar.issuer, create_accounts=True)


def come_in(portal: Portal, liar: LyingProvider, subject: str, sid: str | None = None) -> Browser:
    browser = browser_of(portal)
    begun = begin(browser)
    liar.id_token = id_token(liar, begun, sub=subject, sid=sid)
    assert callback(browser, begun).status_code == 303
    return browser


def logout_token(liar: LyingProvider, key: Any = None, **changed: Any) -> str:
    good = {"iss": liar.issuer, "aud": CLIENT, "jti": f"{time.monotonic_ns()}", "events": EVENT}
    return sign(claims(**(good | changed)), key)


def tell(portal: Portal, token: str) -> int:
    client = app_of(portal).test_client()
    return client.post("/oidc/backchannel-logout", data={"logout_token": token}).status_code


def test_sign_out_continues_to_the_provider(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer, create_accounts=True)
    browser = browser_of(portal)
    sign_in(browser, provider, "leaver")
    answer = browser.post("/logout")
    assert answer.status_code == 200
    address = answer.headers["Refresh"].removeprefix("0; url=")
    assert address.startswith(f"{provider.issuer}/oauth2/end_session?")
    asked = query(address)
    assert asked["post_logout_redirect_uri"] == "http://localhost/login"
    assert asked["client_id"] == CLIENT
    assert asked["id_token_hint"].count(".") == 2
    assert name_of(browser) is None
    # Signing out of a session started with a password does not lead to the provider.
    other = browser_of(portal)
    other.sign_in("admin", PASSWORD)
    assert other.post("/logout").headers["Location"] == "/login"


def test_sign_out_works_when_the_provider_has_no_page_for_it(
    portal: Portal, liar: LyingProvider
) -> None:
    browser = come_in(portal, liar, "leaver")
    assert browser.post("/logout").headers["Location"] == "/login"
    assert name_of(browser) is None


def test_provider_ends_one_session_or_all_of_a_subject(portal: Portal, liar: LyingProvider) -> None:
    first, second = come_in(portal, liar, "grace", "s1"), come_in(portal, liar, "grace", "s2")
    other = come_in(portal, liar, "ada", "s3")
    assert tell(portal, logout_token(liar, sub=None, sid="s1")) == 200
    assert [name_of(b) for b in (first, second, other)] == [None, "grace", "ada"]
    # A session id of another user ends nothing.
    assert tell(portal, logout_token(liar, sub="grace", sid="s3")) == 200
    assert name_of(other) == "ada"
    assert tell(portal, logout_token(liar, sub="grace")) == 200
    assert [name_of(b) for b in (second, other)] == [None, "ada"]
    assert events(portal).count("session_ended") == 2


def test_logout_token_counts_once(portal: Portal, liar: LyingProvider) -> None:
    come_in(portal, liar, "grace")
    token = logout_token(liar, sub="grace")
    assert tell(portal, token) == 200
    again = come_in(portal, liar, "grace")
    assert tell(portal, token) == 400
    assert name_of(again) == "grace"


def test_forged_logout_tokens_end_nothing(portal: Portal, liar: LyingProvider) -> None:
    browser = come_in(portal, liar, "grace", "s1")
    now = int(time.time())
    wrong: tuple[dict[str, Any], ...] = (
        {"key": rsa_key("foreign")},
        {"aud": "another-client"},
        {"iss": "https://evil.example.org"},
        {"events": None},
        {"events": {}},
        {"events": [next(iter(EVENT))]},
        {"events": {next(iter(EVENT)): "x"}},
        {"nonce": "x"},
        {"jti": None},
        {"iat": None},
        {"iat": now - 3600},
        {"exp": now - 3600},
        {"iat": now + 3600},
        {"sub": None},
        {"sub": 7},
        {"sid": 7},
    )
    taken = [
        changed
        for changed in wrong
        if tell(portal, logout_token(liar, **({"sub": "grace"} | changed))) != 400
    ]
    assert taken == []
    # An id token is not a logout token, although the same key signed it for the same client.
    assert tell(portal, liar.id_token) == 400
    for nonsense in ("", "x", "a.b.c", "x" * 10_000):
        assert tell(portal, nonsense) == 400
    assert name_of(browser) == "grace"


def test_logout_tokens_without_a_provider_are_refused(services: Any) -> None:
    from portal import create_app

    client = create_app(services).test_client()
    answer = client.post("/oidc/backchannel-logout", data={"logout_token": "x"})
    assert answer.status_code == 400
    assert answer.get_json()["error"]["code"] == "invalid_logout_token"
    assert answer.headers["Cache-Control"] == "no-store"


def test_expired_values_and_sign_ins_are_deleted(portal: Portal, liar: LyingProvider) -> None:
    from portal.services.people.federation import oidc_sign_ins

    browser = come_in(portal, liar, "grace")
    assert portal.scalar("SELECT count(*) FROM oidc_used_values") == 1
    portal.execute("UPDATE oidc_used_values SET expires_at = now() - interval '1 s'")
    oidc_sign_ins.delete_expired(portal.services)
    assert portal.scalar("SELECT count(*) FROM oidc_used_values") == 0
    assert portal.scalar("SELECT count(*) FROM oidc_sign_ins") == 1
    browser.post("/logout")
    oidc_sign_ins.delete_expired(portal.services)
    assert portal.scalar("SELECT count(*) FROM oidc_sign_ins") == 0
