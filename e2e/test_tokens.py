"""A personal token: created on the account page, used, listed as used, and revoked."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import PASSWORD, OpenPortal

pytestmark = pytest.mark.e2e


def asked(url: str, token: str, *, method: str = "GET") -> int:
    """Return the status of a request with this token."""
    body = json.dumps({}).encode() if method == "POST" else None
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("javascript", [True, False], ids=["js", "no-js"])
def test_token_is_made_by_keyboard_used_and_revoked(
    open_portal: OpenPortal, portal_url: str, javascript: bool
) -> None:
    portal = open_portal("en", javascript=javascript)
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    name = f"nightly import {'js' if javascript else 'plain'}"
    page.goto("/account")
    page.get_by_label("Note").fill(name)
    page.keyboard.press("Tab")
    expect(page.get_by_label("Expires in")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("radio", name="Read", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Read and write")).to_be_checked()
    page.keyboard.press("Enter")

    secret = page.get_by_test_id("secret-value").input_value()
    row = page.get_by_test_id("token-row").filter(has_text=name)
    expect(row.get_by_test_id("token-scope")).to_have_text("Read and write")
    expect(row).to_contain_text("never used")
    documents, conversations = f"{portal_url}/api/knowledge/documents", "/api/conversations"
    assert asked(documents, secret) == 200
    assert asked(portal_url + conversations, secret, method="POST") == 201
    assert asked(f"{portal_url}/admin", secret) == 403

    page.goto("/account")
    expect(page.get_by_test_id("secret-value")).to_have_count(0)
    expect(row.get_by_test_id("token-last-used")).to_contain_text("last used")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_test_id("notification").filter(has_text="revoked")).to_be_visible()
    expect(row).to_have_count(0)
    assert asked(documents, secret) == 401
    assert portal.console_errors == []


@pytest.mark.parametrize(("language", "scheme"), [("zh-CN", "dark"), ("en", "light")])
def test_tokens_are_accessible_and_fit_a_phone(
    open_portal: OpenPortal, check_page: Callable[[Page], None], language: str, scheme: str
) -> None:
    portal = open_portal(language, color_scheme=scheme, viewport={"width": 360, "height": 800})
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.goto("/account")
    form = page.get_by_test_id("token-form")
    form.get_by_role("textbox").fill(f"{language} {scheme}")
    form.get_by_role("radio").last.check()
    form.get_by_role("button").click()
    expect(page.get_by_test_id("secret-value")).to_be_visible()
    check_page(page)


def test_double_click_makes_only_one_token(
    open_portal: OpenPortal,
) -> None:
    portal = open_portal("en")
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.goto("/account")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.get_by_label("Note").fill("twice")
    # The browser sends the first before the second click, as over a slow line.
    page.get_by_role("button", name="Create token").evaluate(
        "(button) => { button.click(); setTimeout(() => button.click()); }"
    )
    expect(page.get_by_test_id("secret-value")).to_be_visible()
    assert sent.count("POST") == 1
