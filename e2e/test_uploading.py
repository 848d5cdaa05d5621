"""Uploading many files: a row for each, failed ones stay until dismissed, no duplicates."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import INDEXING_TIMEOUT_MS, PortalPages
from tests.factories import files

pytestmark = pytest.mark.e2e

GOOD, BAD = 37, 3


def write_files(folder: Path) -> list[Path]:
    """Write forty files, of which the third, the tenth and the last cannot be stored."""
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
    """Choose files by keyboard."""
    button = portal.page.get_by_test_id("upload-button")
    button.focus()
    # The browser reports a file chooser only once it knows of a listener.
    portal.page.on("filechooser", lambda _: None)
    portal.page.evaluate("0")
    with portal.page.expect_file_chooser() as chooser:
        button.press("Enter")
    chooser.value.set_files(paths)


def test_forty_files_of_which_three_fail_by_keyboard(
    open_portal: OpenPortal, assert_accessible: Callable[[Page], None], tmp_path: Path
) -> None:
    portal = open_portal(viewport={"width": 360, "height": 800})
    page, summary = portal.page, "37 of 40 uploaded, 3 failed"
    portal.sign_in("admin", PASSWORD)
    trouble = _trouble(page)
    choose(portal, write_files(tmp_path))
    words = page.get_by_test_id("upload-summary").locator("p")
    expect(words).to_have_text(summary, timeout=150_000)
    expect(page.locator("#upload-spoken")).to_contain_text(summary)
    expect(page.locator("#upload-spoken")).not_to_contain_text("All files")
    # One response was lost and one was 429: both uploads were repeated with the same key, and each
    # file is stored once.
    assert trouble == ["lost", "busy"]
    failed = page.get_by_test_id("upload-item").filter(has=page.get_by_test_id("upload-error"))
    expect(failed).to_have_count(BAD)
    expect(failed.nth(0)).to_contain_text("PNG")
    assert_accessible(page)
    # Each stored file is one row of the list; failed ones stay while others are uploaded.
    expect(page.get_by_test_id("upload-item")).to_have_count(BAD)
    more = tmp_path / "one more.txt"
    more.write_text(f"One more in {tmp_path.name}.", encoding="utf-8")
    choose(portal, [more])
    expect(portal.row("one more")).to_be_visible()
    expect(failed).to_have_count(BAD)
    page.reload()
    expect(failed).to_have_count(BAD)
    expect(failed.nth(0)).to_contain_text("PNG")
    expect(page.get_by_test_id("retry-all-uploads")).to_be_hidden()
    dismiss = failed.nth(0).get_by_test_id("dismiss-upload")
    dismiss.focus()
    dismiss.press("Enter")
    expect(failed).to_have_count(BAD - 1)
    every = page.get_by_test_id("dismiss-all-uploads")
    every.focus()
    every.press("Enter")
    expect(failed).to_have_count(0)
    expect(page.get_by_test_id("upload-button")).to_be_focused()
    page.reload()
    expect(page.get_by_test_id("upload-summary")).to_be_hidden()
    # A duplicate is in the list once, and says so until it is dismissed.
    choose(portal, [more])
    known = page.get_by_test_id("upload-item")
    expect(known).to_contain_text("Already uploaded.")
    expect(words).to_have_text("0 of 1 uploaded, 1 already there")
    expect(every).to_be_hidden()
    expect(page.locator("#upload-spoken")).not_to_contain_text("All files")
    expect(portal.row("one more")).to_have_count(1)
    known.get_by_test_id("dismiss-upload").press("Enter")
    expect(known).to_have_count(0)
    listed = page.request.get("/api/knowledge/documents?q=note 0").json()["documents"]
    assert sorted(one["title"] for one in listed) == [f"note 0{number}" for number in range(10)]
    assert portal.console_errors == []


def _trouble(page: Page) -> list[str]:
    """Drop the response to the first upload after it is stored; answer the fifth with 429."""
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


def test_outcome_of_each_file_is_shown_without_scripts(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal(javascript=False, viewport={"width": 360, "height": 800})
    portal.sign_in("admin", PASSWORD)
    good = tmp_path / "without a script.txt"
    good.write_text("A text that goes without a script.", encoding="utf-8")
    portal.upload(good, files.png_image(tmp_path / "picture.pdf"))
    summary = portal.page.get_by_test_id("upload-summary").first
    expect(summary).to_contain_text("1 of 2 uploaded, 1 failed")
    refused = portal.page.get_by_test_id("upload-error")
    expect(refused).to_contain_text("PNG")
    expect(portal.row(good.stem)).to_be_visible()
    portal.page.get_by_test_id("dismiss-uploads").click()
    expect(refused).to_have_count(0)
    expect(portal.row(good.stem)).to_be_visible()


def write_texts(folder: Path, name: str, count: int) -> list[Path]:
    paths = [folder / f"{name} {number:02}.txt" for number in range(count)]
    for path in paths:
        path.write_text(f"{path.stem} in {folder.name}.", encoding="utf-8")
    return paths


def test_ended_session_asks_for_the_password_and_uploads_continue(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.context.clear_cookies(name="portal_session")
    choose(portal, write_texts(tmp_path, "signed out", 5))
    waiting = page.get_by_test_id("upload-item").filter(has_text="signed in again")
    expect(waiting.first).to_be_visible()
    page.locator("#sign-in-again [name=password]").fill(PASSWORD)
    page.locator("#sign-in-again [type=submit]").click()
    for number in range(5):
        expect(portal.row(f"signed out {number:02}")).to_be_visible()
    # A sign-in in another tab makes a new token for forms, which the page fetches by itself.
    page.evaluate(
        """() => {
          document.querySelectorAll('input[name=csrf_token]').forEach(f => { f.value = 'x' });
          document.body.setAttribute('hx-headers', '{"X-CSRFToken": "x"}');
        }"""
    )
    choose(portal, write_texts(tmp_path, "later", 2))
    expect(portal.row("later 01")).to_be_visible()
    expect(page.get_by_test_id("upload-item")).to_have_count(0)
    assert portal.console_errors == []


def test_file_that_was_moved_since_it_was_chosen_is_chosen_again(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    busy = {"status": 429, "headers": {"Retry-After": "1"}}
    portal.page.route("**/documents", lambda route: route.fulfill(**busy))
    [path] = write_texts(tmp_path, "moved", 1)
    choose(portal, [path])
    expect(portal.page.get_by_test_id("upload-item")).to_contain_text("busy")
    path.unlink()
    portal.page.unroute("**/documents")
    expect(portal.page.get_by_test_id("upload-error")).to_contain_text("Choose it again.")
    expect(portal.page.get_by_test_id("retry-upload")).to_be_hidden()


def test_folder_upload_reports_skipped_and_queued_files(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.route(
        "**/documents", lambda route: route.fulfill(status=429, headers={"Retry-After": "60"})
    )
    write_texts(tmp_path, "many", 45)
    (tmp_path / "program.exe").write_bytes(b"MZ")
    page.get_by_test_id("upload-folder").set_input_files(tmp_path)
    expect(page.locator("#upload-more")).to_have_text("5 more queued.")
    expect(page.locator("#upload-notice")).to_contain_text("unreadable: 1")
    expect(page.locator("#upload-notice")).to_be_visible()


def test_row_link_keeps_the_focus_until_its_document_is_ready(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    choose(portal, write_texts(tmp_path, "keyboard", 1))
    row = portal.row("keyboard 00")
    link = row.get_by_role("link", name="keyboard 00", exact=True)
    link.focus()
    expect(row).to_have_attribute("data-status", "ready", timeout=INDEXING_TIMEOUT_MS)
    expect(link).to_be_focused()


def test_list_is_refreshed_after_many_uploads_without_history_entries(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.goto("/documents")
    before = page.evaluate("history.length")
    paths = write_texts(tmp_path, "list", 52)
    # The refresh comes after the last of 52 uploads.
    with page.expect_response(
        lambda answer: "x-refresh" in answer.request.headers, timeout=INDEXING_TIMEOUT_MS
    ) as refreshed:
        choose(portal, paths)
    assert "hx-push-url" not in refreshed.value.headers
    expect(portal.row("list 51")).to_be_visible()
    assert page.evaluate("history.length") == before
    # Later uploads are listed one by one again.
    choose(portal, write_texts(tmp_path, "after", 1))
    expect(portal.row("after 00")).to_be_visible()


def test_response_of_a_captive_portal_is_not_an_upload(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.route("**/documents", lambda route: route.fulfill(body="<p>Sign in to this network.</p>"))
    choose(portal, write_texts(tmp_path, "captive", 1))
    failed = page.get_by_test_id("upload-error")
    expect(failed).to_contain_text("could not be uploaded")
    page.unroute("**/documents")
    page.get_by_test_id("retry-upload").press("Enter")
    expect(failed).to_have_count(0)
    expect(portal.row("captive 00")).to_be_visible()


def drop(page: Page, path: Path, onto: str = "form[data-upload]") -> None:
    """Drop a file or folder onto the form, or onto the element that `onto` selects."""
    box = page.locator(onto).bounding_box()
    assert box is not None
    # The middle of a long list would be below the window.
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + min(box["height"] / 2, 80)}
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, "data": data} | place)
    devtools.detach()


def test_dropped_folder_is_uploaded_whole_and_leaving_needs_confirmation(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    folder = tmp_path / "dropped"
    # More files than the browser lists at once, and a nested folder.
    (folder / "inner").mkdir(parents=True)
    write_texts(folder, "outer", 103)
    write_texts(folder / "inner", "inner", 2)
    (folder / ".hidden.txt").write_text("Hidden.")
    (folder / "program.exe").write_bytes(b"MZ")
    page.route(
        "**/documents", lambda route: route.fulfill(status=429, headers={"Retry-After": "1"})
    )
    drop(page, folder)
    expect(page.locator("#upload-notice")).to_contain_text("unreadable: 2")
    page.on("dialog", lambda dialog: dialog.dismiss())
    away = page.get_by_role("navigation").get_by_role("link", name="Search").first
    with page.expect_event("dialog") as asked:
        away.click(no_wait_after=True)
    assert asked.value.type == "beforeunload"
    page.unroute("**/documents")
    expect(page.locator("#upload-spoken")).to_contain_text("105 of 105 uploaded", timeout=150_000)
    # With all uploads finished, leaving the page needs no confirmation.
    away.click()
    expect(page).to_have_url(re.compile("/search"))


def test_file_dropped_on_another_page_is_offered_for_upload(
    open_portal: OpenPortal, assert_accessible: Callable[[Page], None], tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    page.goto("/chat")
    page.locator("#chat-input").fill("Half a question")
    (path := tmp_path / "Dropped beside a question.txt").write_text(f"Dropped in {tmp_path}.")
    drop(page, path, onto="main")
    dialog = page.get_by_role("dialog", name="Add documents")
    expect(dialog.get_by_label("Files")).to_have_value(re.compile(path.name))
    assert_accessible(page)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#chat-input")).to_have_value("Half a question")
    drop(page, path, onto="main")
    dialog.get_by_label("For").select_option("private")
    dialog.get_by_role("button", name="Upload documents").click()
    row = page.get_by_test_id("document-row").filter(has_text=path.stem)
    expect(row).to_contain_text("Private")
    page.go_back()
    expect(page.locator("#chat-input")).to_have_value("Half a question")


def test_folder_dropped_on_another_page_keeps_its_tree(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    (folder := tmp_path / "Harbour").mkdir()
    (folder / "Lamps").mkdir()
    write_texts(folder, "quay", 1)
    write_texts(folder / "Lamps", "lamp", 1)
    page.goto("/search")
    drop(page, folder, onto="main")
    dialog = page.get_by_role("dialog", name="Add documents")
    dialog.get_by_role("button", name="Upload documents").click()
    lamp = page.get_by_test_id("document-row").filter(has_text="lamp 00")
    lamp.get_by_role("link", name="Lamps").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lamps")
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    # Files chosen in the picker instead are in none of its folders.
    page.goto("/search")
    drop(page, folder, onto="main")
    (loose := tmp_path / "Loose.txt").write_text(f"Loose in {tmp_path}.")
    dialog.get_by_label("Files").set_input_files(loose)
    dialog.get_by_role("button", name="Upload documents").click()
    row = page.get_by_test_id("document-row").filter(has_text="Loose")
    expect(row).to_be_visible()
    expect(row.get_by_role("link", name="Harbour")).to_have_count(0)


def test_list_heading_stays_on_one_line_on_a_phone_while_files_are_read(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    path = tmp_path / "short.txt"
    path.write_text("A short text.", encoding="utf-8")
    portal = open_portal("en", viewport={"width": 390, "height": 844})
    portal.sign_in("admin", PASSWORD)
    page = portal.page
    # Keep the page from learning that the file has been indexed.
    page.route("**/documents/progress*", lambda route: route.abort())
    page.get_by_test_id("upload-input").set_input_files(path)
    expect(page.get_by_text("Processing documents")).to_be_attached()
    lines = page.get_by_role("heading", level=1).evaluate(
        """(heading) => {
          const range = document.createRange();
          range.selectNodeContents(heading);
          return range.getClientRects().length;
        }"""
    )
    assert lines == 1
