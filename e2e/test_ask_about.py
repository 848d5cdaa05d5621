"""Ask about one document: by "@" with the keyboard, and by the form without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from e2e.conftest import OpenPortal
from e2e.test_chat_journey import Lesson, library_with

pytestmark = pytest.mark.e2e

_LESSON = Lesson(
    "Barometer log", "# Barometer log\n\nThe barometer is read at noon and cleaned in spring.",
    "When is the barometer read?", "at noon",
)  # fmt: skip


def test_question_is_about_the_document_chosen_by_keyboard(
    open_portal: OpenPortal, tmp_path: Path, assert_accessible: Callable[[Page], None]
) -> None:
    portal = open_portal("en")
    library_with(portal, tmp_path, _LESSON)
    page = portal.page
    page.goto("/chat")
    field, options = page.locator("#chat-input"), page.get_by_test_id("about-option")
    part = page.get_by_test_id("about-part")
    field.press_sequentially(f"{_LESSON.question} @baromet")
    expect(options).to_have_count(1)
    expect(field).to_have_attribute("aria-activedescendant", "about-option-1")
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    page.keyboard.type("e")
    expect(options).to_have_count(1)
    page.keyboard.press("Tab")
    expect(part).to_contain_text(_LESSON.title)
    expect(field).to_have_value(f"{_LESSON.question} ")
    expect(field).to_be_focused()
    part.get_by_role("button").press("Enter")
    expect(part).to_have_count(0)
    field.press_sequentially("@bar")
    page.keyboard.press("Enter")
    expect(part).to_contain_text(_LESSON.title)
    expect(page).to_have_url("/chat")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("question-scope")).to_contain_text(_LESSON.title)
    expect(page.get_by_test_id("answer-text")).to_contain_text(_LESSON.fact)
    expect(part).to_have_count(0)
    field.dispatch_event("compositionstart")
    field.evaluate("field => { field.value = '@ba'; field.setSelectionRange(3, 3) }")
    field.evaluate(
        "field => field.dispatchEvent(new InputEvent('input', {bubbles: true, isComposing: true}))"
    )
    expect(page.locator("#about-find")).not_to_have_value("ba")
    field.dispatch_event("compositionend")
    expect(options).to_have_count(1)
    assert portal.console_errors == []


def test_first_page_completes_titles_by_their_middle(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal("zh-CN")
    lesson = Lesson("水塔手册2026", "# 水塔手册\n\n水塔每晚七点放水。", "水塔几点放水？", "七点")
    library_with(portal, tmp_path, lesson)
    page = portal.page
    page.goto("/")
    field, part = page.locator("#chat-input"), page.get_by_test_id("about-part")
    field.press_sequentially("问 @手册2026")
    expect(page.get_by_test_id("about-option")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(part).to_contain_text(lesson.title)
    expect(field).to_have_value("问 ")
    field.press_sequentially(lesson.question)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("question-scope")).to_contain_text(lesson.title)
    page.goto("/")
    field.press_sequentially("@没有这个标题")
    page.keyboard.press("Enter")
    expect(page.locator("#conversation-title")).to_have_text("@没有这个标题")
    assert portal.console_errors == []


def test_titles_for_outdated_input_are_not_shown(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = open_portal("en")
    lesson = Lesson("Aqueduct log", "# Aqueduct log\n\nThe arches are swept in May.", "", "")
    library_with(portal, tmp_path, lesson)
    page = portal.page
    held: list[Route] = []
    page.route("**/chat/about?*", lambda route: held.append(route))  # noqa: PLW0108 - a builtin cannot be marked
    page.clock.install()
    page.goto("/chat")
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    field = page.locator("#chat-input")
    for typed in ("@", "aqueduct"):
        with page.expect_request("**/chat/about?*"):
            field.press_sequentially(typed)
            if held:
                with page.expect_response("**/chat/about?*"):
                    held.pop().continue_()
                page.clock.run_for(50)
                expect(page.get_by_test_id("about-option")).to_have_count(0)
            page.clock.run_for(100)
    page.keyboard.press("Enter")
    held.pop().continue_()
    page.clock.resume()
    expect(page.get_by_test_id("about-part")).to_contain_text(lesson.title)
    expect(page).to_have_url("/chat")
    assert portal.console_errors == []


def test_question_is_about_the_document_found_by_the_form(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal("en", javascript=False)
    lesson = Lesson("Windmill log", "# Windmill log\n\nThe sails are greased on Mondays.", "", "")
    library_with(portal, tmp_path, lesson)
    page = portal.page
    page.goto("/chat")
    page.locator("#chat-input").fill("When are the sails greased?")
    page.get_by_text("Ask about some documents only", exact=True).click()
    page.locator("#about-find").fill("windmill")
    page.locator("#about-find").press("Enter")
    expect(page.locator("#chat-input")).to_have_value("When are the sails greased?")
    page.get_by_label(lesson.title).check()
    page.get_by_test_id("chat-send").click()
    expect(page.get_by_test_id("question-scope")).to_contain_text(lesson.title)
    expect(page.get_by_test_id("answer-text")).to_contain_text("Mondays")
