"""Changes of rights ask for the password again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.people import Scope
from portal.services import Services
from portal.services.people import accounts, invitations, sessions
from portal.web.people import confirming
from tests.conftest import PASSWORD, Portal
from tests.factories.browser import Browser


def age_session(portal: Portal, *, minutes: int) -> None:
    portal.execute(
        "UPDATE sessions SET authenticated_at = now() - make_interval(mins => :minutes)",
        minutes=minutes,
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
    assert done.status_code == 303
    (made,) = sessions.list_personal_tokens(portal.services, portal.admin)
    assert (made.name, made.level.value) == ("nightly import", "write")
    # The password is not asked for again within 15 minutes.
    assert stale.post("/account/tokens", TOKEN_FORM).status_code == 303


def test_stale_cookie_in_a_bearer_header_is_asked_too(portal: Portal, stale: Browser) -> None:
    """A stolen cookie can be sent in either way."""
    headers = {"Authorization": f"Bearer {stale.cookie('portal_session')}"}
    answer = stale.client.post("/api/auth/tokens", json={"name": "mine now"}, headers=headers)
    assert answer.status_code == 403
    assert answer.get_json()["error"]["code"] == "reauthentication_required"
    assert stale.client.post("/admin/invitations", headers=headers).status_code == 403


def test_invitation_is_withdrawn_after_the_password_is_given(
    portal: Portal, stale: Browser
) -> None:
    invitation = invitations.invite(portal.services, portal.admin)
    withdraw = f"/admin/invitations/{invitation.id}/withdraw"
    assert stale.post(withdraw, {}).status_code == 403
    assert invitations.list_invitations(portal.services, portal.admin) == (
        replace(invitation, secret=None),
    )
    assert stale.post(withdraw, {"confirm_password": PASSWORD}).status_code == 303
    assert invitations.list_invitations(portal.services, portal.admin) == ()


def test_scripts_of_pages_confirm_by_json(portal: Portal, stale: Browser) -> None:
    refused = stale.call("POST", "/api/auth/tokens", name="script")
    assert refused.status_code == 403
    assert refused.get_json()["error"]["code"] == "reauthentication_required"
    assert stale.call("POST", "/api/auth/confirm", password="a guess").status_code == 401
    assert stale.call("POST", "/api/auth/confirm", password=PASSWORD).status_code == 204
    assert stale.call("POST", "/api/auth/tokens", name="script").status_code == 201


def test_api_clients_need_no_recent_sign_in(portal: Portal, client: FlaskClient) -> None:
    pair = sessions.sign_in(portal.services, name="admin", password=PASSWORD)
    age_session(portal, minutes=600)
    headers = {"Authorization": f"Bearer {pair.access_token}"}
    assert client.post("/api/auth/tokens", json={"name": "ci"}, headers=headers).status_code == 201
    _, secret = sessions.create_personal_token(
        portal.services, portal.admin, name="ops", ttl_s=600, scopes=[Scope.ADMIN]
    )
    headers = {"Authorization": f"Bearer {secret}"}
    assert client.post("/admin/invitations", headers=headers).status_code == 303


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
def test_confirmations_are_counted_per_session(
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
    portal.execute("UPDATE users SET password_hash = NULL")
    asked = stale.post("/account/tokens", TOKEN_FORM)
    assert 'name="confirm_password"' not in asked.text
    assert "/logout" in asked.text
    offered = confirming.Method(label="Continue with Example", url="/login/example")
    monkeypatch.setattr(confirming, "methods", [lambda: offered, lambda: None])
    asked = stale.post("/account/tokens", TOKEN_FORM)
    assert 'formaction="/login/example"' in asked.text


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


def test_sign_in_guesses_do_not_block_a_change_of_password(
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


def test_wrong_current_password_is_not_reported_as_a_wrong_user_name(
    make_services: Callable[..., Services],
) -> None:
    services = make_services()
    accounts.ensure_first_administrator(services)
    owner = Browser(create_app(services))
    owner.sign_in("admin", PASSWORD)
    form = {"current": "not the one", "new": NEW_PASSWORD, "new_again": NEW_PASSWORD}
    page = owner.post("/account/password", form).text
    assert "Incorrect password. Try again." in page
    assert "username or password" not in page
