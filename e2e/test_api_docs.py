"""The API reference: read without signing in, without scripts, by keyboard, on a phone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import OpenPortal

pytestmark = pytest.mark.e2e

SEARCH = "#knowledge_search"


def test_reference_is_found_from_the_sign_in_page_and_opens_by_keyboard(
    open_portal: OpenPortal,
) -> None:
    page = open_portal("en").page
    page.goto("/login")
    page.get_by_role("contentinfo").get_by_role("link", name="API reference").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("API reference")
    expect(page.locator(SEARCH)).to_be_hidden()

    page.locator(".api-operation > summary", has_text="/api/knowledge/search").first.focus()
    page.keyboard.press("Enter")
    operation = page.locator(SEARCH)
    expect(operation).to_be_visible()
    expect(operation).to_contain_text('curl -X POST "$PORTAL/api/knowledge/search"')
    expect(operation.get_by_role("table", name="application/json").first).to_contain_text("top_n")


def test_link_to_an_operation_opens_it_also_without_scripts(open_portal: OpenPortal) -> None:
    page = open_portal("zh-CN", javascript=False).page
    page.goto(f"/docs{SEARCH}")
    expect(page.get_by_role("heading", level=1)).to_have_text("接口文档")
    expect(page.locator(SEARCH)).to_be_visible()
    expect(page.locator(SEARCH)).to_contain_text("年假有多少天？")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_reference_is_accessible_and_fits_the_screen(
    open_portal: OpenPortal,
    assert_accessible: Callable[[Page], None],
    width: int,
    scheme: str,
) -> None:
    page = open_portal("en", viewport={"width": width, "height": 800}, color_scheme=scheme).page
    page.goto(f"/docs{SEARCH}")
    expect(page.locator(SEARCH)).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    assert_accessible(page)
