"""The front door searches while the user types and asks on Enter; deleted conversations return."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import OpenPortal
from e2e.pages.chat import ChatPage
from e2e.test_chat_journey import Lesson, library_with

pytestmark = pytest.mark.e2e

_LESSON = Lesson(
    "Sundial", "# Sundial\n\nThe sundial stands in the herb garden and was cast in 1904.",
    "Where does the sundial stand?", "herb garden",
)  # fmt: skip


def test_one_field_searches_and_asks(
    open_portal: OpenPortal, tmp_path: Path, assert_accessible: Callable[[Page], None]
) -> None:
    portal = open_portal("en")
    library_with(portal, tmp_path, _LESSON)
    page, chat = portal.page, ChatPage(portal.page)
    page.goto("/")
    expect(page.get_by_test_id("new-documents")).to_contain_text(_LESSON.title)
    chat.field.press_sequentially(_LESSON.question)
    expect(page.get_by_test_id("home-found")).to_contain_text(_LESSON.fact)
    assert_accessible(page)
    chat.field.press("Enter")
    expect(chat.answers.last).to_have_attribute("data-status", "done")
    expect(chat.answers.last).to_contain_text(_LESSON.fact)
    page.goto("/")
    expect(page.get_by_test_id("recent-conversations")).to_contain_text(_LESSON.question)
    assert portal.console_errors == []


def test_deleted_conversation_can_be_restored(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = open_portal("en")
    library_with(portal, tmp_path, _LESSON)
    page, chat = portal.page, ChatPage(portal.page)
    chat.begin(_LESSON.question)
    address = page.url
    head = page.locator(".chat-head")
    pin = head.get_by_test_id("pin-conversation")
    pin.click()
    expect(pin).to_have_accessible_name(re.compile("^Unpin"))
    page.goto("/chat")
    expect(page.get_by_test_id("pinned-conversations")).to_contain_text(_LESSON.question)
    page.goto(address)
    head.get_by_test_id("delete-conversation").click()
    page.wait_for_url("**/chat")
    expect(page.get_by_test_id("pinned-conversations")).to_have_count(0)
    page.get_by_test_id("undo-delete").click()
    page.wait_for_url(address)
    expect(chat.answers.last).to_contain_text(_LESSON.fact)
