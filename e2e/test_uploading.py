"""Many files at once: a row each, what failed stays until it is dismissed, and nothing doubles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import PortalPages
from tests import factories_files as files

pytestmark = pytest.mark.e2e

GOOD, BAD = 37, 3


def write_files(folder: Path) -> list[Path]:
    """Forty, of which the third, the tenth and the last cannot be taken."""
    paths = []
    for number in range(GOOD):
        path = folder / f"note {number:02}.txt"
        path.write_text(f"Note {number} in {folder.name}.", encoding="utf-8")
        paths.append(path)
    binary = folder / "很长的名字 of a file that no portal can read.md"
    binary.write_bytes(b"\x00\x01\x02" * 50)
    paths.insert(2, files.png_image(folder / "picture.pdf"))
    paths.insert(9, files.empty_file(folder / "nothing.txt"))
    return [*paths, binary]


def choose(portal: PortalPages, paths: list[Path]) -> None:
    """With the keyboard: from the button to the files."""
    button = portal.page.get_by_test_id("upload-button")
    button.focus()
    with portal.page.expect_file_chooser() as chooser:
        button.press("Enter")
    chooser.value.set_files(paths)


def test_forty_files_of_which_three_fail_by_keyboard(
    open_portal: OpenPortal,
    assert_accessible: Callable[[Page], None],
    tmp_path: Path,
) -> None:
    portal = open_portal(viewport={"width": 360, "height": 800})
    page, summary = portal.page, "37 of 40 stored, 3 failed"
    portal.sign_in("admin", PASSWORD)
    trouble = _trouble(page)
    choose(portal, write_files(tmp_path))
    words = page.get_by_test_id("upload-summary").locator("p")
    expect(words).to_have_text(summary, timeout=60_000)
    expect(page.locator("#upload-spoken")).to_contain_text(summary)
    # One answer was lost on its way and one came too late: each was asked for again, under the
    # same key, and is there once.
    assert trouble == ["lost", "busy"]
    failed = page.get_by_test_id("upload-item").filter(has=page.get_by_test_id("upload-error"))
    expect(failed).to_have_count(BAD)
    expect(failed.nth(0)).to_contain_text("PNG")
    assert_accessible(page)
    # What is done folds away, what failed stays, whatever else is uploaded.
    more = tmp_path / "one more.txt"
    more.write_text(f"One more in {tmp_path.name}.", encoding="utf-8")
    choose(portal, [more])
    expect(portal.row("one more")).to_be_visible()
    expect(failed).to_have_count(BAD)
    dismiss = failed.nth(0).get_by_test_id("dismiss-upload")
    dismiss.focus()
    dismiss.press("Enter")
    expect(failed).to_have_count(BAD - 1)
    every = page.get_by_test_id("dismiss-all-uploads")
    every.focus()
    every.press("Enter")
    expect(failed).to_have_count(0)
    expect(page.get_by_test_id("upload-button")).to_be_focused()
    # The same bytes again are said to be there, with a link.
    choose(portal, [more])
    known = page.locator("[data-testid=upload-item][data-state=known]")
    expect(known.get_by_role("link", name="one more")).to_be_visible()
    listed = page.request.get("/api/knowledge/documents?q=note 0").json()["documents"]
    assert sorted(one["title"] for one in listed) == [f"note 0{number}" for number in range(10)]
    assert portal.console_errors == []


def _trouble(page: Page) -> list[str]:
    """The first upload's answer is lost after it was stored, and the fifth is told to wait."""
    met: list[str] = []
    count = 0

    def meddle(route: Route) -> None:
        nonlocal count
        count += route.request.method == "POST"
        if count == 1 and not met:
            met.append("lost")
            route.fetch()
            route.abort()
        elif count == 5 and len(met) == 1:
            met.append("busy")
            route.fulfill(status=429, headers={"Retry-After": "1"})
        else:
            route.continue_()

    page.route("**/documents", meddle)
    return met


def test_files_without_a_script_say_each_what_came_of_it(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal(javascript=False, viewport={"width": 360, "height": 800})
    portal.sign_in("admin", PASSWORD)
    good = tmp_path / "without a script.txt"
    good.write_text("A text that goes without a script.", encoding="utf-8")
    portal.upload(good, files.png_image(tmp_path / "picture.pdf"))
    summary = portal.page.get_by_test_id("upload-summary").first
    expect(summary).to_contain_text("1 of 2 stored, 1 failed")
    refused = portal.page.get_by_test_id("upload-error")
    expect(refused).to_contain_text("PNG")
    expect(portal.row(good.stem)).to_be_visible()
    portal.page.get_by_test_id("dismiss-uploads").click()
    expect(refused).to_have_count(0)
    expect(portal.row(good.stem)).to_be_visible()


def test_signing_out_while_files_wait_is_said_and_they_can_be_sent_again(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    cookies = portal.page.context.cookies()
    portal.page.context.clear_cookies(name="portal_session")
    paths = []
    for number in range(5):
        paths.append(tmp_path / f"signed out {number}.txt")
        paths[-1].write_text(f"Signed out {number}.", encoding="utf-8")
    choose(portal, paths)
    failed = portal.page.get_by_test_id("upload-error")
    expect(failed).to_have_count(5)
    expect(failed.first).to_contain_text("signed out")
    portal.page.context.add_cookies(cookies)
    portal.page.get_by_test_id("retry-all-uploads").press("Enter")
    expect(failed).to_have_count(0)
    expect(portal.page.get_by_test_id("upload-summary").locator("p")).to_have_text("5 of 5 stored")
