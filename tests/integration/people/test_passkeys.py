"""Passkeys: registration, sign-in, and forged authenticator responses."""

from __future__ import annotations

import json
from copy import copy
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.people import User
from portal.domain.people.second_factors import Challenge, RelyingParty
from portal.errors import PasskeyRefused
from portal.services.people import accounts, second_factors
from portal.services.people.second_factors import passkeys
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.cases import for_each
from tests.factories.passkeys import Authenticator
from tests.factories.second_factors import PAGE, add_passkey, options, recovery_codes

SITE = RelyingParty(id="localhost", origin="http://localhost")
ALONE, STEP = "/login/passkey", "/login/second-step"


@pytest.fixture
def app(client: FlaskClient) -> Flask:
    return client.application


@pytest.fixture
def owner(app: Flask, portal: Portal) -> Browser:
    """Return a browser in which ada is signed in."""
    portal.user("ada")
    browser = Browser(app)
    browser.sign_in("ada", PASSWORD)
    return browser


@pytest.fixture
def key(owner: Browser) -> Authenticator:
    """Return ada's registered authenticator."""
    authenticator = Authenticator()
    add_passkey(owner, authenticator)
    return authenticator


def sign_in(browser: Browser, authenticator: Authenticator, path: str = ALONE):
    """Sign in with a passkey, alone or as the second step."""
    page = "/login" if path == ALONE else STEP
    given = options(browser, f"{path}/options" if path == ALONE else f"{STEP}/passkey/options",
                    page=page)  # fmt: skip
    target = path if path == ALONE else f"{STEP}/passkey"
    return browser.post(target, {"credential": authenticator.get(given)}, page=page)


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/documents").status_code == 200


def ada(portal: Portal) -> User:
    return accounts.find_user(portal.services, "ada")


def test_first_passkey_creates_recovery_codes_and_enables_the_second_step(
    app: Flask, owner: Browser
) -> None:
    assert len(recovery_codes(add_passkey(owner, Authenticator(), "Laptop"))) == 10
    assert recovery_codes(add_passkey(owner, Authenticator(), "手机")) == []
    page = owner.get(PAGE).text
    assert "Laptop" in page
    assert "手机" in page
    other = Browser(app)
    assert other.sign_in("ada", PASSWORD).headers["Location"].startswith(STEP)


def test_passkey_is_a_second_factor(app: Flask, key: Authenticator) -> None:
    browser = Browser(app)
    browser.sign_in("ada", PASSWORD)
    assert not is_signed_in(browser)
    assert sign_in(browser, key, STEP).status_code == 303
    assert is_signed_in(browser)


def test_passkey_signs_in_without_name_and_password(
    portal: Portal, app: Flask, key: Authenticator
) -> None:
    browser = Browser(app)
    assert sign_in(browser, key).status_code == 303
    assert is_signed_in(browser)
    (session,) = (method for method in _methods(portal) if method == ["passkey"])
    assert session == ["passkey"]


def _methods(portal: Portal) -> list[list[str]]:
    return portal.scalars("SELECT methods FROM sessions")


def test_plain_security_key_is_a_second_factor_but_does_not_sign_in_alone(
    app: Flask, owner: Browser
) -> None:
    plain = Authenticator(verifies_user=False)
    add_passkey(owner, plain)
    alone, second = Browser(app), Browser(app)
    assert sign_in(alone, plain).status_code == 401
    assert not is_signed_in(alone)
    second.sign_in("ada", PASSWORD)
    assert sign_in(second, plain, STEP).status_code == 303


@for_each("path", [ALONE, STEP])
@for_each(
    "lie",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://localhost:8001"},
        {"origin": "https://localhost"},
        {"rp_id": "evil.example"},
        {"sign_count": 0},
        {"user_handle": b"somebody else"},
        {"credential_id": b"another credential of nobody"},
        {"key": Authenticator().key},
    ],
)
def test_authenticator_that_lies_is_refused(
    app: Flask, key: Authenticator, path: str, lie: dict[str, object]
) -> None:
    key.sign_count += 10
    first = Browser(app)
    assert sign_in(first, key).status_code == 303
    liar = copy(key)
    for name, value in lie.items():
        setattr(liar, name, value)
    browser = Browser(app)
    if path == STEP:
        browser.sign_in("ada", PASSWORD)
    assert sign_in(browser, liar, path).status_code == 401
    assert not is_signed_in(browser)


def test_passkey_of_another_user_does_not_pass_the_second_step(
    portal: Portal, app: Flask, key: Authenticator
) -> None:
    portal.user("eve")
    eves, eves_key = Browser(app), Authenticator()
    eves.sign_in("eve", PASSWORD)
    add_passkey(eves, eves_key)
    browser = Browser(app)
    browser.sign_in("ada", PASSWORD)
    assert sign_in(browser, eves_key, STEP).status_code == 401
    # The same if the key claims to be ada's.
    eves_key.user_handle = ada(portal).id.bytes
    assert sign_in(browser, eves_key, STEP).status_code == 401
    assert not is_signed_in(browser)


def test_response_is_valid_once_and_only_in_its_own_browser(app: Flask, key: Authenticator) -> None:
    first, thief = Browser(app), Browser(app)
    answer = {"credential": key.get(options(first, f"{ALONE}/options", page="/login"))}
    # A challenge belongs to the browser that asked for it.
    options(thief, f"{ALONE}/options", page="/login")
    assert thief.post(ALONE, answer, page="/login").status_code == 401
    cookie = first.cookie("portal_form")
    assert first.post(ALONE, answer, page="/login").status_code == 303
    # A replay fails, even with the original cookie.
    again = app.test_client()
    assert cookie
    again.set_cookie("portal_form", cookie)
    form = {**answer, "csrf_token": _csrf(again)}
    assert again.post(ALONE, data=form, base_url="http://localhost").status_code == 401


def _csrf(client: FlaskClient) -> str:
    page = client.get("/login", base_url="http://localhost").text
    return page.partition('name="csrf_token" value="')[2].partition('"')[0]


def test_wrong_response_uses_up_its_challenge(portal: Portal, key: Authenticator) -> None:
    given, challenge = passkeys.begin_sign_in(portal.services, SITE, None)
    right = key.get(json.loads(given))
    for credential in ("{}", right):
        with pytest.raises(PasskeyRefused):
            passkeys.finish_sign_in(
                portal.services, SITE, challenge=challenge, credential=credential, user_id=None
            )


def test_challenge_of_the_second_step_does_not_sign_in_alone(
    portal: Portal, app: Flask, key: Authenticator
) -> None:
    browser = Browser(app)
    browser.sign_in("ada", PASSWORD)
    answer = {"credential": key.get(options(browser, f"{STEP}/passkey/options", page=STEP))}
    assert browser.post(ALONE, answer, page="/login").status_code == 401
    assert not is_signed_in(browser)


def test_challenge_expires(portal: Portal, key: Authenticator) -> None:
    given, challenge = passkeys.begin_sign_in(portal.services, SITE, None)
    late = Challenge(challenge.value, None, datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(PasskeyRefused):
        passkeys.finish_sign_in(
            portal.services, SITE, challenge=late, credential=key.get(json.loads(given)),
            user_id=None,
        )  # fmt: skip


_ALMOST = json.dumps(
    {
        "id": "AA",
        "rawId": "AA",
        "type": "public-key",
        "response": {
            "clientDataJSON": "AA",
            "authenticatorData": "AA",
            "signature": "AA",
            "attestationObject": "ow",
        },
    }
)


@for_each("credential", ["null", "[]", "{", "{}", "[" * 20_000, _ALMOST, "\ud800", "\U0001f511"])
def test_malformed_credential_is_refused_with_a_message(
    owner: Browser, app: Flask, credential: str
) -> None:
    anonymous = Browser(app)
    options(anonymous, f"{ALONE}/options", page="/login")
    form: dict[str, object] = {"credential": credential.encode("utf-8", "surrogatepass")}
    assert anonymous.post(ALONE, form, page="/login").status_code == 401
    options(owner, f"{PAGE}/passkeys/options", page=PAGE)
    answer = owner.post(f"{PAGE}/passkeys", {**form, "name": "Key"}, page=PAGE)
    assert answer.status_code == 422
    assert "could not be verified" in answer.text


def test_registration_is_bound_to_the_site_and_its_challenge(owner: Browser) -> None:
    for authenticator in (
        Authenticator(origin="https://evil.example"),
        Authenticator(rp_id="evil.example"),
    ):
        given = options(owner, f"{PAGE}/passkeys/options", page=PAGE)
        form = {"name": "Key", "credential": authenticator.create(given)}
        assert owner.post(f"{PAGE}/passkeys", form, page=PAGE).status_code == 422
    given = options(owner, f"{PAGE}/passkeys/options", page=PAGE)
    form = {"name": "Key", "credential": Authenticator().create(given)}
    assert owner.post(f"{PAGE}/passkeys", form, page=PAGE).status_code == 303
    assert owner.post(f"{PAGE}/passkeys", form, page=PAGE).status_code == 422


def test_passkey_that_another_user_has_cannot_be_taken_over(
    portal: Portal, app: Flask, key: Authenticator
) -> None:
    portal.user("eve")
    eves = Browser(app)
    eves.sign_in("eve", PASSWORD)
    given = options(eves, f"{PAGE}/passkeys/options", page=PAGE)
    copy = Authenticator(credential_id=key.credential_id)
    form = {"name": "Key", "credential": copy.create(given)}
    assert eves.post(f"{PAGE}/passkeys", form, page=PAGE).status_code == 422
    browser = Browser(app)
    assert sign_in(browser, key).status_code == 303


def test_passkey_of_a_disabled_account_opens_nothing(
    portal: Portal, app: Flask, key: Authenticator
) -> None:
    accounts.set_disabled(portal.services, portal.admin, ada(portal).id, disabled=True)
    browser = Browser(app)
    assert sign_in(browser, key).status_code == 401
    assert not is_signed_in(browser)


def test_only_the_owner_removes_a_passkey(
    portal: Portal, app: Flask, owner: Browser, key: Authenticator, client: FlaskClient
) -> None:
    (found,) = second_factors.load(portal.services, ada(portal).id).passkeys
    eve = portal.user("eve")
    for user in (eve, portal.admin):
        path = f"/api/account/second-factors/passkeys/{found.id}"
        assert client.delete(path, headers=portal.headers(user)).status_code == 404
    assert owner.post(f"{PAGE}/passkeys/{found.id}/remove", page=PAGE).status_code == 303
    left = second_factors.load(portal.services, ada(portal).id)
    assert (left.is_on, left.recovery_codes_left) == (False, 0)


# --- where passkeys work --------------------------------------------------------------------------


def page_at(portal: Portal, address: str) -> str:
    client = create_app(portal.services).test_client()
    client.set_cookie(
        "portal_session",
        portal.token(portal.admin),
        domain=address.split("/")[2].split(":", maxsplit=1)[0],
    )
    return client.get(PAGE, base_url=address).text


def test_ip_address_names_the_address_to_open_instead(portal: Portal) -> None:
    page = page_at(portal, "http://127.0.0.1:8000")
    assert "not for IP addresses; open http://localhost:8000" in page
    assert "passkey-create" not in page
    assert "passkey-create" in page_at(portal, "http://localhost:8000")


def test_public_url_names_the_site_of_passkeys(make_services) -> None:
    services = make_services(public_url="https://portal.example/knowledge")
    portal = Portal.of(services)
    # A proxy that ends TLS does not change where passkeys work.
    page = page_at(portal, "http://portal.example")
    assert 'data-origin="https://portal.example"' in page
    assert "work at https://portal.example" in page_at(portal, "http://localhost:8000")


def test_plain_http_on_another_host_is_refused_with_the_reason(make_services) -> None:
    services = make_services(public_url="http://portal.example")
    portal = Portal.of(services)
    assert "over HTTPS or on localhost only" in page_at(portal, "http://portal.example")
