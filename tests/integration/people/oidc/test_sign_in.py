"""Sign-in through a complete OpenID provider that runs beside the tests."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from portal.domain.people import SignInMethod
from portal.services.people import accounts, tokens
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.oidc import LyingProvider, Provider, path, query
from tests.integration.people.oidc.conftest import (
    MakePortal,
    begin,
    browser_of,
    callback,
    error_of,
    events,
    id_token,
    link,
    name_of,
    sign_in,
)


def test_linked_user_signs_in_and_lands_where_they_were_going(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, label="Example ID")
    portal.user("ada")
    link(portal, "ada", "7f3a")
    browser = browser_of(portal)
    page = browser.get("/login?next=/trash").text
    assert "Sign in with Example ID" in page
    assert 'href="/oidc/sign-in?next=/trash"' in page
    address = begin(browser, "/trash")
    asked = query(address)
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid profile email"
    assert asked["redirect_uri"] == "http://localhost/oidc/callback"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    answer = browser.get(path(provider.approve(address, "7f3a")))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/trash")
    assert name_of(browser) == "ada"
    assert browser.cookie("portal_oidc") is None
    assert "sign_in" in events(portal)


def test_unknown_user_gets_an_account_only_if_the_settings_allow_it(
    provider: Provider, make_portal: MakePortal
) -> None:
    provider.set_user("new", preferred_username="grace")
    browser = browser_of(make_portal(provider.issuer))
    answer = sign_in(browser, provider, "new")
    assert answer.status_code == 403
    assert "No account here belongs to you yet" in error_of(answer)
    assert name_of(browser) is None
    portal = make_portal(provider.issuer, create_accounts=True)
    browser = browser_of(portal)
    assert sign_in(browser, provider, "new").status_code == 303
    assert name_of(browser) == "grace"
    assert "Change password" not in browser.get("/account").text
    # A user renamed at the provider keeps the account.
    provider.set_user("new", preferred_username="hopper")
    browser = browser_of(portal)
    sign_in(browser, provider, "new")
    assert name_of(browser) == "grace"
    assert events(portal).count("oidc_linked") == 1


def test_name_that_is_taken_here_is_never_taken_over(
    provider: Provider, make_portal: MakePortal
) -> None:
    for subject, name in {"x1": "admin", "x2": "ADMIN", "x3": " admin "}.items():
        provider.set_user(subject, preferred_username=name)
        for create_accounts in (False, True):
            portal = make_portal(provider.issuer, create_accounts=create_accounts)
            browser = browser_of(portal)
            answer = sign_in(browser, provider, subject)
            assert answer.status_code == 409
            assert "sign in with its password and link it" in error_of(answer)
            assert name_of(browser) is None


def test_closed_account_stays_closed(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer)
    ada = portal.user("ada")
    link(portal, "ada", "7f3a")
    accounts.set_disabled(portal.services, portal.admin, ada.id, disabled=True)
    answer = sign_in(browser_of(portal), provider, "7f3a")
    assert (answer.status_code, "closed" in error_of(answer)) == (403, True)


# The client's secret, the methods that the provider supports, and how the secret is sent.
CLIENTS: tuple[tuple[str | None, list[str] | None, str | None, str | None], ...] = (
    (None, None, None, None),
    ("a secret: 50%", None, "portal-client:a%20secret%3A%2050%25", None),
    ("s", ["client_secret_post"], None, "s"),
    ("s", ["client_secret_post", "client_secret_basic"], "portal-client:s", None),
)


def test_client_authenticates_as_the_provider_requires(
    liar: LyingProvider, make_portal: MakePortal
) -> None:
    for secret, methods, header, field in CLIENTS:
        liar.requests.clear()
        liar.discovery["token_endpoint_auth_methods_supported"] = methods
        browser = browser_of(make_portal(liar.issuer, client_secret=secret, create_accounts=True))
        begun = begin(browser)
        liar.id_token = id_token(liar, begun)
        assert callback(browser, begun).status_code == 303
        _, sent, headers = next(request for request in liar.requests if request[0] == "/token")
        basic = "Basic " + base64.b64encode(header.encode()).decode() if header else None
        assert headers.get("Authorization") == basic
        assert sent.get("client_secret") == field
        assert sent["redirect_uri"] == "http://localhost/oidc/callback"
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert query(begun)["code_challenge"] == challenge


def test_cancelled_sign_in_reports_it(provider: Provider, make_portal: MakePortal) -> None:
    browser = browser_of(make_portal(provider.issuer))
    address = begin(browser)
    denied = provider.deny(address)
    # The test provider omits the state when it refuses.
    answer = browser.get(f"{path(denied)}&state={query(address)['state']}")
    assert answer.status_code == 403
    assert "You cancelled the sign-in" in error_of(answer)


# Settings, claims, and the resulting sign-in method.
FACTORS: tuple[tuple[dict[str, str], dict[str, Any], SignInMethod], ...] = (
    ({}, {"amr": ["pwd"]}, SignInMethod.OIDC),
    ({}, {"amr": ["pwd", "mfa"]}, SignInMethod.OIDC_MFA),
    ({}, {"acr": "gold"}, SignInMethod.OIDC),
    ({"second_factor_acr": "silver, gold"}, {"acr": "gold"}, SignInMethod.OIDC_MFA),
    ({"second_factor": "always"}, {}, SignInMethod.OIDC_MFA),
)


def test_two_factors_count_when_the_provider_or_a_setting_allows_it(
    liar: LyingProvider, make_portal: MakePortal
) -> None:
    for settings, said, expected in FACTORS:
        portal = make_portal(liar.issuer, create_accounts=True, **settings)
        browser = browser_of(portal)
        begun = begin(browser)
        liar.id_token = id_token(liar, begun, **said)
        assert callback(browser, begun).status_code == 303
        token = browser.cookie("portal_session") or ""
        started = tokens.authenticate(portal.services, token).session
        assert started is not None
        assert started.methods == (expected,)


def test_unreachable_provider_stops_neither_the_start_nor_passwords(
    make_portal: MakePortal,
) -> None:
    portal = make_portal("http://127.0.0.1:9", label="Example ID")
    browser = browser_of(portal)
    page = browser.get("/login").text
    assert "Example ID cannot be reached" in page
    assert 'data-testid="oidc-sign-in"' not in page
    answer = browser.get("/oidc/sign-in")
    assert answer.status_code == 503
    assert "cannot be reached" in error_of(answer)
    assert browser.sign_in("admin", PASSWORD).status_code == 303


def test_pages_do_not_exist_without_a_provider(portal: Portal) -> None:
    browser = browser_of(portal)
    assert "oidc" not in browser.get("/login").text
    for address in ("/oidc/sign-in", "/oidc/callback?code=x&state=y"):
        assert browser.get(address).status_code == 404
