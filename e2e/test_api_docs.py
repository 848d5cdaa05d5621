"""The API reference: usable without signing in, by keyboard, on a phone, without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import OpenPortal

pytestmark = pytest.mark.e2e

# Swagger UI draws all operations at once, on a machine that may be busy.
_DRAWN_TIMEOUT_MS = 90_000


def test_reference_is_found_from_the_sign_in_page_and_opens_by_keyboard(
    open_portal: OpenPortal,
) -> None:
    page = open_portal("en", viewport={"width": 1280, "height": 800}, color_scheme="light").page
    refused = refusals(page)
    page.goto("/login")
    page.get_by_role("contentinfo").get_by_role("link", name="API reference").click()
    expect(page.get_by_role("heading", level=1).first).to_have_text("API reference")
    operation = page.locator("#operations-Knowledge-knowledge_search")
    expect(operation).to_be_hidden()

    # While it draws, the page does not respond, not even to report which element has the focus.
    page.locator("#operations-tag-Knowledge button").focus(timeout=_DRAWN_TIMEOUT_MS)
    page.keyboard.press("Enter")
    operation.locator(".opblock-summary-control").focus(timeout=_DRAWN_TIMEOUT_MS)
    page.keyboard.press("Enter")
    expect(operation).to_contain_text("年假有多少天？", timeout=_DRAWN_TIMEOUT_MS)
    expect_fits(page, is_dark=False)
    # The field has a name, however late or often Swagger UI draws it.
    servers = page.locator("#servers")
    servers.evaluate("it => { it.removeAttribute('aria-label'); it.parentNode.append(it); }")
    expect(servers).to_have_accessible_name("Server")
    assert refused == []


def test_endpoints_are_listed_without_scripts(open_portal: OpenPortal) -> None:
    page = open_portal("zh-CN", javascript=False).page
    page.goto("/docs")
    expect(page.get_by_role("heading", level=1)).to_have_text("接口文档")
    expect(page.locator("li", has_text="POST /api/knowledge/search").first).to_be_visible()
    expect(page.get_by_role("link", name="OpenAPI 3.1")).to_have_attribute("href", "/openapi")


def test_reference_opens_at_an_operation_and_fits_a_phone(open_portal: OpenPortal) -> None:
    page = open_portal("en", viewport={"width": 360, "height": 800}, color_scheme="dark").page
    refused = refusals(page)
    page.goto("/docs#/Knowledge/knowledge_search")
    opened = page.locator("#operations-Knowledge-knowledge_search .opblock-body")
    expect(opened).to_be_visible(timeout=_DRAWN_TIMEOUT_MS)
    expect_fits(page, is_dark=True)
    assert refused == []


def refusals(page: Page) -> list[str]:
    """Return a list to which everything that the content security policy refuses is added."""
    refused: list[str] = []
    page.on("console", lambda m: refused.append(m.text) if "Policy" in m.text else None)
    return refused


def expect_fits(page: Page, *, is_dark: bool) -> None:
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("html.dark-mode").count() == is_dark
