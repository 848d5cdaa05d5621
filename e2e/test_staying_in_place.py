"""Users stay where they are: sign-in in place, the pending state, keyboard shortcuts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from sqlalchemy import text

from e2e.conftest import PASSWORD, OpenPortal
from e2e.light_portal import LightPortal, library, light_portal
from e2e.pages.chat import ChatPage
from e2e.test_chat_journey import Lesson, library_with

pytestmark = pytest.mark.e2e

_LESSON = Lesson(
    "Weathercock", "# Weathercock\n\nThe weathercock was gilded in 1911 by a smith from Arles.",
    "When was the weathercock gilded?", "1911",
)  # fmt: skip
# Sends the question, and returns once the page shows it as pending: before the server has answered.
_PENDING = """() => new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(".message-pending")) return;
    observer.disconnect();
    resolve();
  }).observe(document.body, { childList: true, subtree: true });
  document.getElementById("ask-form").requestSubmit();
})"""


def type_into_go(page: Page, words: str) -> None:
    page.locator("body").press("Control+k")
    # Playwright does not wait before typing as it does before clicking.
    expect(page.get_by_test_id("go-text")).to_be_focused()
    page.keyboard.type(words)


def test_question_survives_the_session_and_shows_at_once(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal("en")
    library_with(portal, tmp_path, _LESSON)
    page, chat = portal.page, ChatPage(portal.page)
    chat.begin(_LESSON.question)
    expect(chat.answers.last).to_contain_text(_LESSON.fact)
    chat.field.fill("Who gilded the weathercock?")
    page.evaluate(_PENDING)
    expect(chat.answers).to_have_count(2)
    expect(chat.answers.last).not_to_have_attribute("data-status", "streaming")
    expect(page.locator(".chat-send")).to_be_visible()

    page.context.clear_cookies(name="portal_session")
    chat.field.fill("And where was the smith from?")
    chat.field.press("Enter")
    again = page.get_by_test_id("sign-in-again")
    expect(again.get_by_label("Username")).to_have_value("admin")
    for password in ("not the password", PASSWORD):
        again.get_by_label("Password").fill(password)
        again.get_by_label("Password").press("Enter")
        if password != PASSWORD:
            expect(again.get_by_test_id("form-error")).to_be_visible()
    expect(chat.answers).to_have_count(3)
    expect(page.locator("#dialog")).not_to_be_visible()
    expect(chat.field).to_have_value("")

    type_into_go(page, "weatherc")
    page.keyboard.press("Escape")
    type_into_go(page, "weatherc")
    expect(page.get_by_test_id("go-results")).to_contain_text("Weathercock")
    page.get_by_test_id("go-text").press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/*")
    page.locator("body").press("?")
    expect(page.get_by_test_id("keys-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#dialog")).not_to_be_visible()


def test_slow_list_shows_that_it_is_loading(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = open_portal("en")
    library_with(portal, tmp_path, _LESSON)
    page = portal.page
    page.goto("/documents")
    order, list_ = page.get_by_label("Sort by"), page.locator("#document-results")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/documents?**sort=title*", hold)
    with page.expect_request("**/documents?**sort=title*"):
        order.select_option("title")
    expect(list_).to_have_attribute("data-loading", "")
    held[0].continue_()
    expect(page).to_have_url(re.compile("sort=title"))
    expect(list_).not_to_have_attribute("data-loading", "")


def work_on(portal: LightPortal, status: str, stage: str | None = None, done: int = 0) -> None:
    """Set the indexing progress of all documents."""
    with portal.services.database.begin() as session:
        session.execute(text("UPDATE documents SET status = :status"), {"status": status})
        session.execute(
            text(
                """
                UPDATE jobs SET status = :status, stage = :stage, done_count = :done,
                    total_count = 4 * :done, started_at = now() - interval '20 s'
                """
            ),
            {"status": status, "stage": stage, "done": done},
        )


@pytest.mark.parametrize(("language", "width"), [("en", 1440), ("zh-CN", 390), ("en", 320)])
def test_rows_stay_where_they_are_while_documents_are_read(
    browser: Browser, language: str, width: int
) -> None:
    with library({"Travel.md": "By train.", "差旅.md": "坐火车。"}) as made, \
            light_portal(made, browser) as portal:  # fmt: skip
        page = portal.open_window(language, viewport={"width": width, "height": 900}).page
        rows = page.get_by_test_id("document-row")
        tops = "rows => rows.map((row) => row.getBoundingClientRect().top + scrollY)"
        work_on(portal, "queued")
        page.goto("/documents")
        places = rows.evaluate_all(tops)
        words = page.get_by_test_id("document-status")
        for stage, done in (("reading", 0), ("embedding", 120)):
            work_on(portal, "processing", stage, done)
            expect(words.first).to_have_text(re.compile("120" if done else "Read|读取"))
            expect(page.get_by_test_id("seen-by").first).to_be_visible()
            expect(page.get_by_test_id("cancel-document").first).to_be_visible()
            assert rows.evaluate_all(tops) == places, stage
        work_on(portal, "ready")
        # The status moves to the column where it also is after a reload.
        in_column = page.locator(".row-state").get_by_test_id("document-status")
        expect(in_column).to_have_text(["Ready" if language == "en" else "已就绪"] * 2)
        expect(words).to_have_count(2)
        assert rows.evaluate_all(tops) == places
        # It stays under a pointer that may be about to press, and closes afterwards.
        # On the smallest phones, "Delete" takes its place at once.
        rows.first.hover()
        if width > 320:
            state = "document.querySelector('.document-work').getAnimations()[0]?.playState"
            page.wait_for_function(f"() => {state} === 'paused'")
        page.mouse.move(0, 0)
        expect(page.locator(".document-work").first).to_be_hidden()
        # After a reload, the list no longer has a line for the work that was done.
        page.reload()
        expect(page.locator(".document-work")).to_have_count(0)
        portal.close_windows()
