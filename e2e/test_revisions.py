"""A new version of a document is searched, and the old one can still be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import INDEXING_TIMEOUT_MS

pytestmark = pytest.mark.e2e

FIRST = "The keeper climbs ninety steps to the lamp.\n\n守灯人每晚点灯两次。\n"
SECOND = "The keeper climbs eighty steps to the lamp.\n\n守灯人每晚点灯三次。\n"


def test_new_version_is_read_compared_and_discarded_on_a_phone(
    open_portal: OpenPortal, tmp_path: Path, assert_accessible: Callable[[Page], None]
) -> None:
    paths = {"tower.txt": FIRST.encode(), "tower 2.txt": SECOND.encode()}
    paths |= {"tower 3.pdf": b"%PDF-1.7 broken"}
    for name, content in paths.items():
        (tmp_path / name).write_bytes(content)
    portal = open_portal(viewport={"width": 360, "height": 740})
    page = portal.page
    portal.sign_in("admin", PASSWORD)
    portal.upload(tmp_path / "tower.txt")
    portal.wait_until_ready(["tower"])
    portal.row("tower").get_by_role("link", name="tower", exact=True).click()

    def send(name: str) -> None:
        page.get_by_text("New version", exact=True).click()
        page.get_by_test_id("version-input").set_input_files(tmp_path / name)
        page.get_by_test_id("upload-version").click()

    send("tower 2.txt")
    page.get_by_role("link", name="Show the current text").or_(
        page.get_by_test_id("revisions")
    ).first.wait_for(timeout=INDEXING_TIMEOUT_MS)
    page.reload()
    expect(page.get_by_test_id("revision-row")).to_have_count(2)
    expect(page.get_by_test_id("passage").first).to_contain_text("eighty")
    page.get_by_test_id("revisions").locator("summary").click()
    page.get_by_test_id("revision-row").first.get_by_role("link", name="Differences").click()
    told = page.get_by_test_id("differences")
    expect(told.locator("del")).to_have_text(["ninety", "两"])
    expect(told.locator("ins")).to_have_text(["eighty", "三"])
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert_accessible(page)
    page.get_by_role("link", name="Text of version 1").click()
    expect(page.get_by_test_id("revision-text")).to_contain_text("ninety")

    page.get_by_role("link", name="Back to the document").click()
    send("tower 3.pdf")
    failed = page.locator("[data-testid=unread-version][data-status=failed]")
    expect(failed).to_contain_text("tower 3.pdf", timeout=INDEXING_TIMEOUT_MS)
    assert_accessible(page)
    expect(page.get_by_test_id("passage").first).to_contain_text("eighty")
    page.get_by_test_id("discard-version").click()
    expect(page.get_by_test_id("document-status").first).to_be_visible()
    expect(failed).to_have_count(0)
    expect(portal.search("How many steps to the lamp?").first).to_contain_text("eighty")
    assert portal.console_errors == []
