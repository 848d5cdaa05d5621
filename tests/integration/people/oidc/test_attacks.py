"""Known attacks on sign-in through an OpenID provider fail."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import jwt
import pytest

from portal.services.people.federation.oidc_provider import create_oidc_provider
from tests.conftest import Portal
from tests.factories.browser import Browser
from tests.factories.servers.issuer import (
    claims,
    ec_key,
    jwk,
    public_pem,
    rsa_key,
    sign,
    sign_by_hand,
)
from tests.factories.servers.oidc import CLIENT, LyingProvider, Provider, path, query
from tests.integration.people.oidc.conftest import (
    MakePortal,
    begin,
    browser_of,
    callback,
    error_of,
    id_token,
    link,
    name_of,
    sign_in,
)

NOW = int(time.time())


@pytest.fixture
def portal(make_portal: MakePortal, liar: LyingProvider) -> Portal:
    """Return a portal with ada, whose subject at the provider is 7f3a."""
    portal = make_portal(liar.issuer)
    portal.user("ada")
    link(portal, "ada", "7f3a")
    return portal


def is_out(browser: Browser) -> bool:
    return browser.cookie("portal_session") is None and name_of(browser) is None


def test_valid_response_of_the_lying_provider_signs_in(portal: Portal, liar: LyingProvider) -> None:
    """Without this, the refusals below would prove nothing."""
    browser = browser_of(portal)
    begun = begin(browser)
    liar.id_token = id_token(liar, begun)
    assert callback(browser, begun, iss=liar.issuer).status_code == 303
    assert name_of(browser) == "ada"


def test_wrong_state_is_refused(portal: Portal, liar: LyingProvider) -> None:
    for state in (None, "", "x", "ü", "x" * 9000):
        browser = browser_of(portal)
        begun = begin(browser)
        liar.id_token = id_token(liar, begun)
        answer = callback(browser, begun, state=state)
        assert (answer.status_code, is_out(browser)) == (400, True)
    assert not any(asked[0] == "/token" for asked in liar.requests)


def test_sign_in_cannot_be_finished_in_another_browser(portal: Portal, liar: LyingProvider) -> None:
    """Otherwise an attacker could sign a victim in as the attacker and read what they write."""
    attacker, victim = browser_of(portal), browser_of(portal)
    begun = begin(attacker)
    liar.id_token = id_token(liar, begun)
    assert callback(victim, begun).status_code == 400
    begin(victim)
    assert callback(victim, begun).status_code == 400
    assert is_out(victim)


def test_tampered_cookie_is_refused(portal: Portal, liar: LyingProvider) -> None:
    browser = browser_of(portal)
    begun = begin(browser)
    value = browser.cookie("portal_oidc") or ""
    content, _, rest = value.partition(".")
    # Not the last character, some of whose bits are ignored.
    other = "A" if value[-2] != "A" else "B"
    for forged in ("", "x", f"{value[:-2]}{other}{value[-1]}", f"{content}x.{rest}"):
        browser.client.set_cookie("portal_oidc", forged)
        liar.id_token = id_token(liar, begun)
        assert callback(browser, begun).status_code == 400
        assert is_out(browser)


def test_sign_in_finishes_once_although_its_cookie_was_copied(
    portal: Portal, liar: LyingProvider
) -> None:
    browser, thief = browser_of(portal), browser_of(portal)
    begun = begin(browser)
    copied = browser.cookie("portal_oidc") or ""
    liar.id_token = id_token(liar, begun)
    assert callback(browser, begun).status_code == 303
    thief.client.set_cookie("portal_oidc", copied)
    assert callback(thief, begun).status_code == 400
    assert is_out(thief)
    assert sum(asked[0] == "/token" for asked in liar.requests) == 1


def test_code_that_was_used_is_refused(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer, create_accounts=True)
    first, second = browser_of(portal), browser_of(portal)
    address = provider.approve(begin(first), "replayed")
    assert first.get(path(address)).status_code == 303
    state = query(begin(second))["state"]
    code = query(address)["code"]
    answer = second.get(f"/oidc/callback?code={code}&state={state}")
    assert (answer.status_code, is_out(second)) == (403, True)


def test_code_of_another_user_is_refused(provider: Provider, make_portal: MakePortal) -> None:
    """A code that leaks from one browser does not work in another, which has a different nonce."""
    portal = make_portal(provider.issuer, create_accounts=True)
    victim, attacker = browser_of(portal), browser_of(portal)
    leaked = query(provider.approve(begin(victim), "victim"))["code"]
    state = query(begin(attacker))["state"]
    answer = attacker.get(f"/oidc/callback?code={leaked}&state={state}")
    assert (answer.status_code, is_out(attacker)) == (403, True)


# Each makes a valid token invalid; None omits the claim.
WRONG: tuple[dict[str, Any], ...] = (
    {"nonce": None},
    {"nonce": "another"},
    {"nonce": ["x"]},
    {"aud": "another-client"},
    {"aud": None},
    {"aud": [CLIENT, "another"]},
    {"aud": [CLIENT, "another"], "azp": "another"},
    {"azp": "another"},
    {"iss": "https://evil.example.org"},
    {"iss": None},
    {"exp": NOW - 3600},
    {"exp": None},
    {"iat": NOW + 3600},
    {"iat": None},
    {"nbf": NOW + 3600},
    {"sub": None},
    {"sub": ""},
    {"sub": 7},
    {"sub": "7f3a\0"},
    {"sub": "7F3A"},
    {"auth_time": "yesterday"},
    {"auth_time": 1e300},
    {"sid": 7},
    {"sid": "x" * 300},
)


def test_token_with_a_wrong_or_missing_claim_is_refused(
    portal: Portal, liar: LyingProvider
) -> None:
    let_in = []
    for changed in WRONG:
        browser = browser_of(portal)
        begun = begin(browser)
        good = claims(iss=liar.issuer, aud=CLIENT, nonce=query(begun)["nonce"])
        body = {name: value for name, value in (good | changed).items() if value is not None}
        content = json.dumps(body).encode()
        liar.id_token = jwt.PyJWS().encode(content, rsa_key("one"), "RS256", {"kid": "one"})
        answer = callback(browser, begun)
        if answer.status_code not in {400, 403} or not is_out(browser):
            let_in.append((changed, answer.status_code))
    assert let_in == []


def test_signatures_of_others_and_of_no_key_are_refused(
    portal: Portal, liar: LyingProvider
) -> None:
    """They are refused although the discovery document allows `none` and HS256."""
    let_in = []
    for words in ("none", "public key as secret", "client secret", "ours", "foreign", "ES256"):
        browser = browser_of(portal)
        begun = begin(browser)
        body = claims(iss=liar.issuer, aud=CLIENT, nonce=query(begun)["nonce"])
        foreign = rsa_key("foreign")
        liar.id_token = {
            "none": jwt.encode(body, None, algorithm="none", headers={"kid": "one"}),
            "public key as secret": sign_by_hand(body, public_pem(rsa_key("one"))),
            "client secret": sign_by_hand(body, b"a client's secret"),
            "ours": sign_by_hand(body, portal.services.secret_key.encode()),
            "foreign": sign(body, foreign, headers={"jwk": jwk(foreign, "one")}),
            "ES256": sign(body, ec_key("foreign"), algorithm="ES256"),
        }[words]
        answer = callback(browser, begun)
        if answer.status_code != 403 or not is_out(browser):
            let_in.append(words)
    assert let_in == []


def test_answer_of_another_provider_is_refused(portal: Portal, liar: LyingProvider) -> None:
    for issuer in ("https://evil.example.org", "", "x"):
        browser = browser_of(portal)
        begun = begin(browser)
        liar.id_token = id_token(liar, begun)
        assert callback(browser, begun, iss=issuer).status_code == 403
        assert is_out(browser)
    assert not any(asked[0] == "/token" for asked in liar.requests)


def test_announced_issuer_parameter_is_required(
    make_portal: MakePortal, liar: LyingProvider
) -> None:
    liar.discovery["authorization_response_iss_parameter_supported"] = True
    browser = browser_of(make_portal(liar.issuer, create_accounts=True))
    begun = begin(browser)
    liar.id_token = id_token(liar, begun)
    assert callback(browser, begun).status_code == 403
    begun = begin(browser)
    liar.id_token = id_token(liar, begun)
    assert callback(browser, begun, iss=liar.issuer).status_code == 303


ELSEWHERE = (
    "//evil.example.org",
    "https://evil.example.org",
    r"/\evil.example.org",
    "javascript:1",
    "/%0aX",
)


def test_sign_in_never_redirects_to_another_site(portal: Portal, liar: LyingProvider) -> None:
    for after in ELSEWHERE:
        browser = browser_of(portal)
        begun = begin(browser, after)
        liar.id_token = id_token(liar, begun)
        answer = callback(browser, begun)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")


def test_error_texts_of_the_provider_are_never_shown(portal: Portal, liar: LyingProvider) -> None:
    markup = "<img src=x onerror=alert(1)>"
    browser = browser_of(portal)
    begun = begin(browser)
    answer = callback(browser, begun, error=markup, error_description=markup, code=None)
    assert answer.status_code == 403
    assert "did not sign you in" in error_of(answer)
    begun = begin(browser)
    liar.token_status = 400
    liar.token_body = json.dumps({"error": markup, "error_description": markup}).encode()
    refused = callback(browser, begun)
    assert refused.status_code == 403
    assert "onerror" not in answer.text + refused.text


# Responses of the token endpoint, and the portal's response to each.
USELESS = (
    (200, b"", 403),
    (200, b"[]", 403),
    (200, b"<html>", 403),
    (200, b'{"access_token": "x"}', 403),
    (200, b'{"id_token": 7}', 403),
    (200, b'{"id_token": "' + b"x" * 100_000 + b'"}', 403),
    (200, b'{"id_token": "x"}' + b" " * 300_000, 403),
    (200, b"[" * 100_000, 403),
    (400, b'{"error": "invalid_grant"}', 403),
    (500, b"oh", 503),
    (302, b"", 403),
)


def test_useless_token_endpoint_answer_is_reported_without_a_500(
    portal: Portal, liar: LyingProvider
) -> None:
    met = []
    for liar.token_status, liar.token_body, _ in USELESS:
        browser = browser_of(portal)
        answer = callback(browser, begin(browser))
        assert is_out(browser)
        met.append((liar.token_status, liar.token_body, answer.status_code))
    assert met == list(USELESS)


LIES: tuple[dict[str, Any], ...] = (
    {"issuer": "https://evil.example.org"},
    {"issuer": None},
    {"token_endpoint": "http://evil.example.org/token"},
    {"token_endpoint": None},
    {"jwks_uri": "file:///etc/passwd"},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"id_token_signing_alg_values_supported": ["none", "HS256"]},
    {"x": "x" * 300_000},
)


def test_invalid_discovery_document_is_not_used(
    make_portal: MakePortal, liar: LyingProvider
) -> None:
    portal = make_portal(liar.issuer)
    begun = []
    for liar.discovery in LIES:
        oidc = create_oidc_provider(portal.services.settings.oidc, leeway_s=60)
        browser = browser_of(replace(portal, services=replace(portal.services, oidc=oidc)))
        answer = browser.get("/oidc/sign-in")
        if answer.status_code != 503 or "cannot be reached" not in error_of(answer):
            begun.append(liar.discovery)
    assert begun == []


def test_discovery_follows_no_redirect(make_portal: MakePortal, liar: LyingProvider) -> None:
    liar.redirect = f"{liar.issuer}/elsewhere"
    assert browser_of(make_portal(liar.issuer)).get("/oidc/sign-in").status_code == 503
    assert [asked[0] for asked in liar.requests] == ["/.well-known/openid-configuration"]


def test_made_up_codes_reach_the_provider_only_from_a_sign_in_that_began_here(
    portal: Portal, liar: LyingProvider
) -> None:
    browser = browser_of(portal)
    for _ in range(20):
        browser.get("/oidc/callback?code=x&state=y")
    assert not any(asked[0] == "/token" for asked in liar.requests)


def test_secrets_of_a_sign_in_are_not_logged(
    provider: Provider, make_portal: MakePortal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal = make_portal(provider.issuer, create_accounts=True, client_secret="hush-hush")
    browser = browser_of(portal)
    address = provider.approve(begin(browser), "logged")
    assert browser.get(path(address)).status_code == 303
    logged = "".join(capsys.readouterr())
    for secret in (*query(address).values(), "hush-hush", browser.cookie("portal_session") or "?"):
        assert secret not in logged
    assert "hush-hush" not in repr(portal.services)


def test_sign_in_replaces_the_secret_of_forms(provider: Provider, make_portal: MakePortal) -> None:
    portal = make_portal(provider.issuer, create_accounts=True)
    browser = browser_of(portal)
    planted = browser.csrf_token()
    assert sign_in(browser, provider, "forms").status_code == 303
    answer = browser.client.post(
        "/account/preferences",
        data={"csrf_token": planted, "domain": "x"},
        base_url="http://localhost",
    )
    assert answer.status_code == 403
