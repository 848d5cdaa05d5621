"""Sessions: how they start, what they are bound to, and how they end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import session
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.people import Client, Scope, SessionKind, SignInMethod
from portal.errors import InvalidToken, SignInExpired, WrongCredentials
from portal.services import Services
from portal.services.people import accounts, sessions, tokens
from portal.services.people.second_factors import pending_sign_ins
from portal.web.people import confirming
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser


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


def test_refresh_token_used_twice_ends_its_session(portal: Portal) -> None:
    first = sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    second = tokens.refresh(portal.services, first.refresh_token)
    with pytest.raises(InvalidToken):
        tokens.refresh(portal.services, first.refresh_token)
    with pytest.raises(InvalidToken):
        tokens.authenticate(portal.services, second.access_token)


# --- sign-ins that need a second factor -----------------------------------------------------------


def test_pending_sign_in_keeps_its_user_and_is_no_session(
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


@pytest.mark.parametrize("state", ["", "x", "a.b.c", "WyJhIl0.aaaaaa.bbbb"])
def test_forged_pending_sign_in_is_refused(portal: Portal, state: str) -> None:
    with pytest.raises(SignInExpired):
        pending_sign_ins.load(portal.services, state)


def test_pending_sign_in_expires(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    user = accounts.verify_password(portal.services, "admin", PASSWORD)
    state = pending_sign_ins.begin(portal.services, user, methods=[SignInMethod.PASSWORD])
    monkeypatch.setattr(pending_sign_ins, "LIFE_S", -1)
    with pytest.raises(SignInExpired):
        pending_sign_ins.load(portal.services, state)


# --- the forms of a session -----------------------------------------------------------------------


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


# --- cookies --------------------------------------------------------------------------------------


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


# --- changes of rights ask for the password again -------------------------------------------------


def age_session(portal: Portal, *, minutes: int) -> None:
    with portal.services.database.begin() as session:
        session.execute(
            text("UPDATE sessions SET authenticated_at = now() - make_interval(mins => :minutes)"),
            {"minutes": minutes},
        )


@pytest.fixture
def stale(portal: Portal, client: FlaskClient) -> Browser:
    """Return an administrator's browser that signed in 16 minutes ago."""
    browser = Browser(client.application)
    browser.sign_in("admin", PASSWORD)
    age_session(portal, minutes=16)
    return browser


TOKEN_FORM = {"name": "nightly import", "days": "90", "scope": "write"}


def test_stale_session_makes_no_token_until_the_password_is_given(
    portal: Portal, stale: Browser
) -> None:
    asked = stale.post("/account/tokens", TOKEN_FORM)
    assert asked.status_code == 403
    assert 'data-testid="confirm-form"' in asked.text
    # The page repeats the same form, with a password field.
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked.text))
    assert TOKEN_FORM.items() <= fields.items()
    assert sessions.list_personal_tokens(portal.services, portal.admin) == ()
    wrong = stale.client.post("/account/tokens", data=fields | {"confirm_password": "a guess"})
    assert wrong.status_code == 422
    assert "nightly import" in wrong.text
    done = stale.client.post("/account/tokens", data=fields | {"confirm_password": PASSWORD})
    assert done.status_code == 200
    (made,) = sessions.list_personal_tokens(portal.services, portal.admin)
    assert (made.name, made.level.value) == ("nightly import", "write")
    # The password is not asked for again within 15 minutes.
    assert stale.post("/account/tokens", TOKEN_FORM).status_code == 200


def test_stale_cookie_in_a_bearer_header_is_asked_too(portal: Portal, stale: Browser) -> None:
    """A stolen cookie can be sent in either way."""
    headers = {"Authorization": f"Bearer {stale.cookie('portal_session')}"}
    answer = stale.client.post("/api/auth/tokens", json={"name": "mine now"}, headers=headers)
    assert answer.status_code == 403
    assert answer.get_json()["error"]["code"] == "reauthentication_required"
    assert stale.client.post("/admin/invitations", headers=headers).status_code == 403


def test_scripts_of_pages_confirm_by_json(portal: Portal, stale: Browser) -> None:
    refused = stale.call("POST", "/api/auth/tokens", name="script")
    assert refused.status_code == 403
    assert refused.get_json()["error"]["code"] == "reauthentication_required"
    assert stale.call("POST", "/api/auth/confirm", password="a guess").status_code == 401
    assert stale.call("POST", "/api/auth/confirm", password=PASSWORD).status_code == 204
    assert stale.call("POST", "/api/auth/tokens", name="script").status_code == 201


def test_tokens_of_api_clients_are_not_asked(portal: Portal, client: FlaskClient) -> None:
    pair = sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    age_session(portal, minutes=600)
    headers = {"Authorization": f"Bearer {pair.access_token}"}
    assert client.post("/api/auth/tokens", json={"name": "ci"}, headers=headers).status_code == 201
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="ops", ttl_s=600, scopes=[Scope.ADMIN]
    )
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.post("/admin/invitations", headers=headers).status_code == 200


def test_confirmation_page_returns_to_where_the_user_was(stale: Browser) -> None:
    page = stale.get("/account/confirm?next=/admin")
    assert 'data-testid="confirm-form"' in page.text
    form = {"confirm_password": PASSWORD, "confirm_path": "/admin"}
    assert stale.post("/account/confirm", form).headers["Location"] == "/admin"
    form["confirm_path"] = "https://evil.example/"
    assert stale.post("/account/confirm", form).headers["Location"] == "/account"


def test_fragment_that_needs_confirmation_leads_to_its_page(stale: Browser) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://localhost/admin"}
    form = {"csrf_token": stale.csrf_token("/admin")}
    answer = stale.client.post("/admin/invitations", data=form, headers=headers)
    assert answer.headers["HX-Redirect"] == "/account/confirm?next=/admin"


@pytest.mark.parametrize("path", ["/account/confirm", "/admin/invitations"])
def test_confirmations_are_counted_a_session(
    make_services: Callable[..., Services], path: str
) -> None:
    services = make_services(rate_limits={"enabled": False, "sign_in_confirmation": "3 per minute"})
    portal = Portal.of(services)
    app = create_app(services)
    thief, owner = Browser(app), Browser(app)
    for browser in (thief, owner):
        browser.sign_in("admin", PASSWORD)
    age_session(portal, minutes=16)
    guesses = [thief.post(path, {"confirm_password": "a guess"}).status_code for _ in range(4)]
    assert guesses == [422, 422, 422, 429]
    assert thief.post(path, {"confirm_password": PASSWORD}).status_code == 429
    assert owner.post(path, {"confirm_password": PASSWORD}).status_code in {200, 303}


def test_user_without_a_password_confirms_by_another_method(
    portal: Portal, stale: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with portal.services.database.begin() as session:
        session.execute(text("UPDATE users SET password_hash = NULL"))
    asked = stale.post("/account/tokens", TOKEN_FORM)
    assert 'name="confirm_password"' not in asked.text
    assert "/logout" in asked.text
    offered = confirming.Method(label="Continue with Example", url="/login/example")
    monkeypatch.setattr(confirming, "methods", [lambda: offered, lambda: None])
    asked = stale.post("/account/tokens", TOKEN_FORM)
    assert 'formaction="/login/example"' in asked.text


def test_held_form_is_offered_again_after_another_method(stale: Browser) -> None:
    fields = TOKEN_FORM | {"confirm_path": "/account/tokens"}
    with stale.client.application.test_request_context(method="POST", data=fields):
        confirming.hold()
        held = session["held_form"]
    with stale.client.session_transaction() as kept:
        kept["held_form"] = held
    page = stale.get("/account/confirm/resume").text
    assert 'action="/account/tokens"' in page
    assert 'value="nightly import"' in page
    assert stale.get("/account/confirm/resume").status_code == 303


# --- the password ---------------------------------------------------------------------------------

NEW_PASSWORD = "a quite different password"


def test_password_guesses_lock_out_no_user(make_services: Callable[..., Services]) -> None:
    services = make_services(rate_limits={"enabled": False, "sign_in_confirmation": "3 per minute"})
    portal = Portal.of(services)
    client, thief, owner = create_app(services).test_client(), portal.headers(), portal.headers()

    def change(headers: dict[str, str], current: str) -> int:
        form = {"current": current, "new": NEW_PASSWORD, "new_again": NEW_PASSWORD}
        return client.post("/account/password", data=form, headers=headers).status_code

    assert [change(thief, "a guess") for _ in range(4)] == [422, 422, 422, 429]
    assert change(thief, PASSWORD) == 429
    # Sign-in and the owner's other session have limits of their own.
    body = {"username": "admin", "password": PASSWORD}
    assert client.post("/api/auth/token", json=body).status_code == 200
    assert change(owner, PASSWORD) == 303


def test_guesses_at_the_sign_in_leave_the_change_of_password_alone(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(rate_limits={"enabled": True, "sign_in": "3 per minute"})
    accounts.ensure_first_administrator(services)
    app = create_app(services)
    owner, client = Browser(app), app.test_client()
    owner.sign_in("admin", PASSWORD)
    body = {"username": "admin", "password": "a guess"}
    assert [client.post("/api/auth/token", json=body).status_code for _ in range(4)][-1] == 429
    form = {"current": PASSWORD, "new": NEW_PASSWORD, "new_again": NEW_PASSWORD}
    assert owner.post("/account/password", form).status_code == 303
    assert owner.get("/documents").status_code == 200


def test_personal_token_changes_no_password(portal: Portal, client: FlaskClient) -> None:
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="stolen", ttl_s=600, scopes=[Scope.ADMIN]
    )
    form = {"current": PASSWORD, "new": NEW_PASSWORD, "new_again": NEW_PASSWORD}
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.post("/account/password", data=form, headers=headers).status_code == 403
    assert sessions.sign_in(portal.services, name="admin", password=PASSWORD)


# --- the list of sessions -------------------------------------------------------------------------

CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/140.0.0.0 Safari/537.36"


def listed(browser: Browser) -> list[dict[str, Any]]:
    return list(browser.get("/api/account/sessions").get_json()["sessions"])


def test_list_names_device_address_method_and_last_use(client: FlaskClient) -> None:
    here = Browser(client.application, address="192.0.2.1")
    there = Browser(client.application, agent=CHROME, address="198.51.100.7")
    here.sign_in("admin", PASSWORD)
    there.sign_in("admin", PASSWORD)
    found = {one["current"]: one for one in listed(here)}
    assert found[True]["device"] == {"program": "Firefox", "platform": "Linux"}
    assert found[False]["device"] == {"program": "Chrome", "platform": "Windows"}
    assert found[False]["address"] == "198.51.100.7"
    assert found[False]["methods"] == ["password"]
    page = here.get("/account/sessions").text
    for words in ("Firefox on Linux", "Chrome on Windows", "198.51.100.7", "This session"):
        assert words in page


def test_use_is_noted_once_a_minute(portal: Portal, client: FlaskClient) -> None:
    browser = Browser(client.application, address="192.0.2.1")
    browser.sign_in("admin", PASSWORD)
    with portal.services.database.begin() as session:
        for table in ("sessions", "tokens"):
            session.execute(text(f"UPDATE {table} SET last_used_at = now() - interval '1 hour'"))
    browser._request["environ_base"] = {"REMOTE_ADDR": "198.51.100.7"}
    (moved,) = listed(browser)
    assert moved["address"] == "198.51.100.7"
    browser._request["environ_base"] = {"REMOTE_ADDR": "203.0.113.9"}
    assert listed(browser) == [moved]


def test_ended_session_is_out_at_once_in_every_process(
    portal: Portal, client: FlaskClient, make_services: Callable[..., Services]
) -> None:
    mine, lost = Browser(client.application), Browser(client.application)
    # Another process has its own connection pool and caches.
    elsewhere = Browser(create_app(make_services()))
    for browser in (mine, lost):
        browser.sign_in("admin", PASSWORD)
    elsewhere.client.set_cookie("portal_session", lost.cookie("portal_session") or "")
    assert elsewhere.get("/documents").status_code == 200
    (other,) = [one["id"] for one in listed(mine) if not one["current"]]
    assert mine.post(f"/account/sessions/{other}/end").status_code == 303
    assert elsewhere.get("/documents").status_code == 303
    assert lost.get("/documents").status_code == 303
    assert mine.get("/documents").status_code == 200


def test_ending_all_others_keeps_this_one_and_personal_tokens(
    portal: Portal, client: FlaskClient
) -> None:
    mine = Browser(client.application)
    mine.sign_in("admin", PASSWORD)
    api = sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="script", ttl_s=600
    )
    assert mine.call("DELETE", "/api/account/sessions").status_code == 204
    assert [one["current"] for one in listed(mine)] == [True]
    for token in (api.access_token, api.refresh_token):
        with pytest.raises(InvalidToken):
            tokens.authenticate(portal.services, token)
    with pytest.raises(InvalidToken):
        tokens.refresh(portal.services, api.refresh_token)
    assert tokens.authenticate(portal.services, secret)


def test_sessions_of_others_are_not_there(portal: Portal, client: FlaskClient) -> None:
    portal.user("eve")
    mine, eve = Browser(client.application), Browser(client.application)
    mine.sign_in("admin", PASSWORD)
    eve.sign_in("eve", PASSWORD)
    (session_id,) = [one["id"] for one in listed(mine)]
    assert eve.call("DELETE", f"/api/account/sessions/{session_id}").status_code == 404
    assert eve.post(f"/account/sessions/{session_id}/end").status_code == 404
    assert mine.get("/documents").status_code == 200


# --- new devices ----------------------------------------------------------------------------------


def notices(browser: Browser) -> list[dict[str, Any]]:
    answer = browser.get("/api/notifications").get_json()
    return [one["device"] for one in answer["notifications"] if one["kind"] == "new_device"]


def events(portal: Portal, event: str) -> list[dict[str, Any]]:
    with portal.services.database.begin() as session:
        found = session.execute(
            text("SELECT details FROM audit_log WHERE event = :event"), {"event": event}
        )
        return list(found.scalars())


def test_new_browser_notifies_and_a_known_one_does_not(portal: Portal, client: FlaskClient) -> None:
    home = Browser(client.application)
    home.sign_in("admin", PASSWORD)
    assert notices(home) == []
    home.post("/logout")
    home.sign_in("admin", PASSWORD)
    assert notices(home) == []
    Browser(client.application, agent=CHROME, address="198.51.100.7").sign_in("admin", PASSWORD)
    expected = {"program": "Chrome", "platform": "Windows", "address": "198.51.100.7"}
    assert notices(home) == [expected]
    assert events(portal, "new_device") == [expected]
    assert "New sign-in to your account: Chrome on Windows" in home.get("/notifications").text
    assert 'data-unread="1"' in home.get("/documents").text


def test_thief_cannot_hide_the_notice_of_their_own_device(client: FlaskClient) -> None:
    owner, thief = Browser(client.application), Browser(client.application, agent=CHROME)
    owner.sign_in("admin", PASSWORD)
    thief.sign_in("admin", PASSWORD)
    thief.post("/logout")
    thief.sign_in("admin", PASSWORD)  # This browser is known by now.
    assert notices(thief) == []
    thief.post("/notifications/read")
    thief.call("POST", "/api/notifications/read", all=True)
    headers = {"HX-Request": "true"}
    form = {"csrf_token": thief.csrf_token("/account")}
    assert thief.client.post("/notifications/tell", data=form, headers=headers).status_code == 204
    assert len(notices(owner)) == 1
    assert 'data-unread="1"' in owner.get("/documents").text
    owner.post("/notifications/read")
    assert 'data-unread="0"' in owner.get("/documents").text


def test_program_with_a_stolen_password_notifies_the_user(
    portal: Portal, client: FlaskClient
) -> None:
    owner = Browser(client.application)
    owner.sign_in("admin", PASSWORD)
    body = {"username": "admin", "password": PASSWORD}
    for _ in range(2):
        answer = client.post("/api/auth/token", json=body, headers={"User-Agent": "curl/8.5.0"})
        assert answer.status_code == 200
    assert [one["program"] for one in notices(owner)] == ["curl"]
