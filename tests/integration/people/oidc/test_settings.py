"""Settings of the provider, and a portal without password sign-in."""

from __future__ import annotations

from typing import Any

from portal.services.people import accounts, invitations
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.oidc import Provider
from tests.integration.people.oidc.conftest import (
    MakePortal,
    browser_of,
    error_of,
    name_of,
    sign_in,
)


def test_passwords_can_be_switched_off_for_all_but_one(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, only=True, create_accounts=True, label="Example ID")
    portal.user("ada")
    accounts.create_user(portal.services, name="second", password=PASSWORD, is_admin=True)
    page = browser_of(portal).get("/login").text
    assert "Sign in with Example ID" in page
    assert "<details" in page
    for name in ("ada", "second", "nobody"):
        for password in (PASSWORD, "wrong"):
            browser = browser_of(portal)
            answer = browser.sign_in(name, password)
            # The response is the same for right and wrong passwords: none is checked.
            assert (answer.status_code, "not used here" in error_of(answer)) == (403, True)
            body = {"username": name, "password": password}
            answer = browser.client.post("/api/auth/token", json=body)
            assert answer.get_json()["error"]["code"] == "password_sign_in_off"
    emergency = browser_of(portal)
    assert emergency.sign_in("admin", "wrong").status_code == 401
    assert emergency.sign_in("Admin", PASSWORD).status_code == 303
    assert name_of(emergency) == "admin"
    assert sign_in(browser_of(portal), provider, "anyone").status_code == 303


def test_emergency_password_works_only_for_an_administrator(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, only=True, break_glass="ada")
    portal.user("ada")
    assert browser_of(portal).sign_in("ada", PASSWORD).status_code == 403
    assert browser_of(portal).sign_in("admin", PASSWORD).status_code == 403


def test_invitation_makes_no_account_without_a_way_to_sign_in(
    provider: Provider, make_portal: MakePortal
) -> None:
    portal = make_portal(provider.issuer, only=True)
    secret = invitations.invite(portal.services, portal.admin).secret
    assert browser_of(portal).get(f"/invite/{secret}").status_code == 403


def test_registration_is_closed_without_a_way_to_sign_in(
    provider: Provider, make_services: Any
) -> None:
    oidc = {"issuer": provider.issuer, "client_id": "portal", "only": True}
    portal = Portal.of(make_services(registration="open", oidc=oidc))
    browser = browser_of(portal)
    assert "/register" not in browser.get("/login").text
    assert browser.get("/register").status_code == 403
    form: dict[str, object] = {"name": "mei", "password": PASSWORD, "password_again": PASSWORD}
    assert browser.post("/register", form, page="/login").status_code == 403
    assert len(accounts.list_accounts(portal.services, portal.admin)) == 1


def test_redirect_address_begins_with_the_public_address(
    provider: Provider, make_services: Any
) -> None:
    services = make_services(
        public_url="https://portal.example.org/knowledge",
        oidc={"issuer": provider.issuer, "client_id": "portal"},
    )
    from portal import create_app
    from tests.factories.browser import Browser
    from tests.factories.servers.oidc import query

    browser = Browser(create_app(services))
    address = browser.get("/oidc/sign-in").headers["Location"]
    expected = "https://portal.example.org/knowledge/oidc/callback"
    assert query(address)["redirect_uri"] == expected
