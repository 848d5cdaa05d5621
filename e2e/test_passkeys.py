"""A passkey registered on the account page replaces the password, with Chromium's virtual
authenticator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import CDPSession, Page, expect

from e2e.conftest import PASSWORD, OpenPortal

pytestmark = pytest.mark.e2e

_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def add_authenticator(page: Page) -> tuple[CDPSession, str]:
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    added = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    return devtools, added["authenticatorId"]


def sign_in(page: Page, site: str, name: str) -> None:
    page.goto(f"{site}/login")
    form = page.get_by_test_id("login-form")
    form.locator("input[name=name]").fill(name)
    form.locator("input[name=password]").fill(PASSWORD)
    form.locator("button[type=submit]").click()
    # Leaving the page at once would cancel the request.
    page.wait_for_url(lambda address: not address.endswith("/login"))


def invite(open_portal: OpenPortal, name: str) -> None:
    """Create an account by invitation, so that the administrator's stays unchanged."""
    admin = open_portal("en")
    admin.sign_in("admin", PASSWORD)
    admin.page.goto("/admin")
    admin.page.get_by_test_id("make-invitation").click()
    link = admin.page.get_by_test_id("secret-value").input_value()
    guest = open_portal("en").page
    guest.goto(link)
    guest.locator("input[name=name]").fill(name)
    guest.locator("input[name=password]").fill(PASSWORD)
    guest.locator("input[name=password_again]").fill(PASSWORD)
    guest.locator("main button[type=submit]").click()
    expect(guest.get_by_test_id("chat-input")).to_be_visible()


def test_passkey_is_registered_and_signs_in_without_a_password(
    open_portal: OpenPortal, portal_url: str, assert_accessible: Callable[[Page], None]
) -> None:
    invite(open_portal, "passkey user")
    site = portal_url.replace("127.0.0.1", "localhost")
    portal = open_portal("en")
    page = portal.page
    devtools, authenticator = add_authenticator(page)
    sign_in(page, site, "passkey user")
    page.goto(f"{site}/account/second-factors")
    assert_accessible(page)
    page.get_by_label("Passkey name").fill("Test laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_test_id("new-recovery-codes").get_by_role("listitem")).to_have_count(10)
    expect(page.get_by_test_id("passkey-row")).to_contain_text("Test laptop")
    assert_accessible(page)

    page.context.clear_cookies()
    page.goto(f"{site}/login?next=/chat")
    assert_accessible(page)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page).to_have_url(f"{site}/chat")

    # The same passkey works as the second step after the password.
    page.context.clear_cookies()
    sign_in(page, site, "passkey user")
    expect(page).to_have_url(f"{site}/login/second-step")
    assert_accessible(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_test_id("chat-input")).to_be_visible()

    # Without user verification a passkey is no substitute for the password.
    page.context.clear_cookies()
    unverified = {"authenticatorId": authenticator, "isUserVerified": False}
    devtools.send("WebAuthn.setUserVerified", unverified)
    page.goto(f"{site}/login")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("The passkey was not used")
    assert portal.console_errors == []
