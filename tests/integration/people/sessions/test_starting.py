"""How sessions start: sign-in methods, forms, cookies."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from portal.domain.people import Client, SessionKind, SignInMethod
from portal.errors import SignInExpired, WrongCredentials
from portal.services.people import accounts, sessions, tokens
from portal.services.people.second_factors import pending_sign_ins
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser
from tests.factories.cases import for_each


def test_session_of_a_sign_in_names_its_methods(portal: Portal) -> None:
    user = accounts.verify_password(portal.services, "admin", PASSWORD)
    methods = [SignInMethod.PASSWORD, SignInMethod.TOTP]
    started = sessions.start_session(
        portal.services, user, kind=SessionKind.BROWSER, methods=methods, client=Client()
    )
    found = tokens.authenticate(portal.services, started.access_token).session
    assert found is not None
    assert (found.id, found.kind, found.methods) == (
        *(started.id, SessionKind.BROWSER),
        tuple(methods),
    )


def test_sign_in_under_way_ends_with_the_old_password(portal: Portal) -> None:
    verified = accounts.verify_password(portal.services, "admin", PASSWORD)
    accounts.change_password(
        portal.services, portal.admin, current=PASSWORD, new="another long enough one"
    )
    with pytest.raises(WrongCredentials):
        sessions.start_session(
            portal.services,
            verified,
            kind=SessionKind.API,
            methods=[SignInMethod.PASSWORD],
            client=Client(),
        )


def test_pending_sign_in_keeps_its_user_and_is_not_a_session(
    portal: Portal, client: FlaskClient
) -> None:
    user = accounts.verify_password(portal.services, "admin", PASSWORD)
    state = pending_sign_ins.begin(portal.services, user, methods=[SignInMethod.PASSWORD])
    found = pending_sign_ins.load(portal.services, state)
    assert (found.user, found.methods) == (user, (SignInMethod.PASSWORD,))
    headers = {"Authorization": f"Bearer {state}"}
    assert client.get("/api/knowledge/documents", headers=headers).status_code == 401
    client.set_cookie("portal_session", state)
    assert client.get("/documents").status_code == 303


@for_each("state", ["", "x", "a.b.c", "WyJhIl0.aaaaaa.bbbb"])
def test_forged_pending_sign_in_is_refused(portal: Portal, state: str) -> None:
    with pytest.raises(SignInExpired):
        pending_sign_ins.load(portal.services, state)


def test_pending_sign_in_expires(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    user = accounts.verify_password(portal.services, "admin", PASSWORD)
    state = pending_sign_ins.begin(portal.services, user, methods=[SignInMethod.PASSWORD])
    monkeypatch.setattr(pending_sign_ins, "LIFE_S", -1)
    with pytest.raises(SignInExpired):
        pending_sign_ins.load(portal.services, state)


def test_form_token_of_another_session_is_refused(portal: Portal, client: FlaskClient) -> None:
    """An attacker plants their own form cookie and token in a victim's browser."""
    portal.user("eve")
    attacker, victim = Browser(client.application), Browser(client.application)
    attacker.sign_in("eve", PASSWORD)
    victim.sign_in("admin", PASSWORD)
    planted = attacker.csrf_token("/account")
    victim.client.set_cookie("portal_form", attacker.cookie("portal_form") or "")
    form = {"csrf_token": planted, "language": "en"}
    assert victim.client.post("/preferences/language", data=form).status_code == 403
    # The victim's own page still works with the planted cookie.
    assert victim.post("/preferences/language", {"language": "en"}).status_code == 303


def test_form_token_from_before_a_sign_in_is_refused_after_it(client: FlaskClient) -> None:
    browser = Browser(client.application)
    before = browser.csrf_token("/login")
    browser.sign_in("admin", PASSWORD)
    form = {"csrf_token": before, "language": "en"}
    assert browser.client.post("/preferences/language", data=form).status_code == 403
    first = browser.csrf_token("/account")
    browser.post("/logout")
    browser.sign_in("admin", PASSWORD)
    form = {"csrf_token": first, "language": "en"}
    assert browser.client.post("/preferences/language", data=form).status_code == 403


def test_cookies_over_https_are_bound_to_the_host(client: FlaskClient) -> None:
    browser = Browser(client.application, scheme="https")
    answer = browser.sign_in("admin", PASSWORD)
    given = [cookie for cookie in answer.headers.getlist("Set-Cookie") if "Max-Age=0" not in cookie]
    assert {cookie.partition("=")[0] for cookie in given} >= {
        *("__Host-portal_session", "__Host-portal_browser", "__Host-portal_device"),
    }
    for cookie in answer.headers.getlist("Set-Cookie"):
        assert cookie.startswith("__Host-portal_")
        assert "Domain" not in cookie
        for part in ("; Secure", "; HttpOnly", "; Path=/", "; SameSite=Lax"):
            assert part in cookie
    assert browser.get("/documents").status_code == 200


def test_plain_session_cookie_opens_nothing_over_https_and_is_cleared(
    portal: Portal, client: FlaskClient
) -> None:
    client.set_cookie("portal_session", portal.token(portal.admin))
    assert client.get("/documents").status_code == 200
    answer = client.get("/documents", base_url="https://localhost")
    assert answer.status_code == 303
    (cleared,) = [
        cookie
        for cookie in answer.headers.getlist("Set-Cookie")
        if cookie.startswith("portal_session=")
    ]
    assert "Max-Age=0" in cleared
