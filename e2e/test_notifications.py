"""Notifications that a document is ready or has failed: shown once, on any page, also later."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import INDEXING_TIMEOUT_MS, PortalPages

pytestmark = pytest.mark.e2e


def invite(open_portal: OpenPortal, name: str) -> None:
    """Create an account that no other test uses."""
    portal = open_portal("en")
    page = portal.page
    portal.sign_in("admin", PASSWORD)
    page.goto("/admin")
    page.get_by_test_id("make-invitation").click()
    link = page.get_by_test_id("secret-value").input_value()
    newcomer = open_portal("en").page
    newcomer.goto(link[link.index("/invite/") :])
    newcomer.locator("input[name=name]").fill(name)
    newcomer.locator("input[name=password]").fill(PASSWORD)
    newcomer.locator("input[name=password_again]").fill(PASSWORD)
    newcomer.get_by_test_id("invitation-form").locator("button[type=submit]").click()
    expect(newcomer.get_by_test_id("chat-input")).to_be_visible()


def told(portal: PortalPages) -> Locator:
    """Locate the messages in the corner of the page."""
    return portal.page.locator("#notifications").get_by_test_id("notification")


def expect_no_more(portal: PortalPages) -> None:
    """Wait until the page has polled, and expect no message."""
    with portal.page.expect_response(lambda answer: "/notifications/state" in answer.url) as asked:
        portal.page.evaluate("htmx.trigger('#notification-bell', 'portal:seen')")
    assert asked.value.status == 204
    expect(told(portal)).to_have_count(0)


def bell(portal: PortalPages) -> Locator:
    return portal.page.get_by_test_id("notification-bell")


def test_one_is_reported_once_on_whatever_page_one_is_and_also_later(
    open_portal: OpenPortal, assert_accessible: Callable[[Page], None], tmp_path: Path
) -> None:
    name, good, blank = "told once", tmp_path / "潮汐表 tide table.txt", tmp_path / "blank.txt"
    good.write_text("High water is at noon. 中午满潮。", encoding="utf-8")
    blank.write_text("\n \n", encoding="utf-8")
    invite(open_portal, name)

    # The message appears on a page other than the upload's and does not take the focus. A window
    # without JavaScript does not mark it as shown.
    plain = open_portal("zh-CN", javascript=False)
    plain.sign_in(name, PASSWORD)
    here = open_portal("en", viewport={"width": 360, "height": 740})
    here.sign_in(name, PASSWORD)
    expect(bell(here)).to_have_accessible_name("Notifications")
    expect(here.page.locator("#notifications[aria-live=polite]")).to_be_empty()
    plain.upload(good)
    here.page.goto("/account")
    field = here.page.get_by_test_id("preferred-domain")
    field.focus()
    expect(told(here)).to_contain_text(good.stem, timeout=INDEXING_TIMEOUT_MS)
    expect(field).to_be_focused()
    expect(bell(here)).to_have_accessible_name("Notifications, 1 unread")
    assert_accessible(here.page)
    here.page.reload()
    expect_no_more(here)
    _stays_when_its_session_ends(here)
    here.page.close()

    # A job that ends while no page is open is announced on the next one, in the user's language.
    plain.upload(blank)
    plain.reload_until(plain.row(blank.stem), "failed")
    back = open_portal("zh-CN", color_scheme="dark", viewport={"width": 360, "height": 740})
    # It reaches the page even if the bell is refreshed meanwhile.
    asking: list[Route] = []

    def hold(route: Route) -> None:
        asking.append(route)

    back.page.route("**/notifications/deliver", hold)
    # Signing in takes several pages.
    with back.page.expect_request("**/notifications/deliver", timeout=INDEXING_TIMEOUT_MS):
        back.sign_in(name, PASSWORD)
    with back.page.expect_response("**/notifications/state?**"):
        back.page.evaluate("htmx.trigger('#notification-bell', 'portal:seen')")
    back.page.evaluate("new Promise(requestAnimationFrame)")
    for one in asking:
        one.continue_()
    back.page.unroute("**/notifications/deliver")
    expect(told(back)).to_contain_text("请选择含有文字的文件")
    expect(told(back)).to_have_attribute("data-kind", "error")
    expect(bell(back)).to_contain_text("2")
    told(back).locator("[data-dismiss]").focus()
    back.page.keyboard.press("Escape")
    expect(told(back)).to_have_count(0)
    back.page.reload()
    expect_no_more(back)
    _reads_them(back, plain, good.stem, assert_accessible)
    assert back.console_errors == []


def _stays_when_its_session_ends(portal: PortalPages) -> None:
    """Check that text being typed survives the end of the session."""
    field = portal.page.get_by_test_id("preferred-domain")
    field.fill("tides")
    with portal.page.expect_response(lambda answer: "/notifications/state" in answer.url) as asked:
        # The bell may poll by itself from here on and stop at the 401; that is then the response.
        portal.page.context.clear_cookies()
        portal.page.evaluate("htmx.trigger('#notification-bell', 'portal:seen')")
    assert asked.value.status == 401
    portal.page.evaluate("htmx.trigger('#notification-bell', 'portal:seen')")
    expect(field).to_have_value("tides")
    expect(told(portal)).to_have_count(0)
    assert portal.console_errors == []


def _reads_them(
    portal: PortalPages, plain: PortalPages, title: str, assert_accessible: Callable[[Page], None]
) -> None:
    """Check notifications in the bell's menu, and in the list without JavaScript."""
    bell(portal).click()
    rows = portal.page.locator("#notification-menu").get_by_test_id("notification")
    expect(rows).to_have_count(2)
    assert_accessible(portal.page)
    portal.page.keyboard.press("Escape")
    expect(rows).to_have_count(0)
    # A second click or Enter closes the menu; the next one opens it again.
    for press in (bell(portal).click, lambda: bell(portal).press("Enter")):
        press()
        expect(rows).to_have_count(2)
        press()
        expect(rows).to_have_count(0)
        expect(bell(portal)).to_have_attribute("aria-expanded", "false")
    bell(plain).click()
    expect(plain.page).to_have_url(re.compile("/notifications$"))
    rows = plain.page.get_by_test_id("notification")
    rows.filter(has_text=title).get_by_role("button").click()
    expect(plain.page.get_by_role("heading", level=1)).to_contain_text(title)
    # The remaining one, and the sign-ins of the two other browsers.
    expect(bell(plain)).to_contain_text("3")
    bell(plain).click()
    plain.page.get_by_test_id("mark-all-read").click()
    expect(plain.page.locator(".is-unread")).to_have_count(0)
    portal.page.goto("/notifications")
    expect(portal.page.locator(".bell-count")).to_have_count(0)
    assert_accessible(portal.page)
