"""The panes of a conversation: beside each other on wide windows, sheets over it on phones."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from e2e.light_portal import LightPortal, library, light_portal
from e2e.pages.chat import ChatPage
from portal.services.answers import conversations
from tests.conftest import Portal
from tests.factories.servers.chat import Until
from tests.factories.servers.endpoint import wait_until

pytestmark = pytest.mark.e2e

TITLE, FACT = "Harbour rules", "The lamp is lit at dusk"
QUESTION = "When is the lamp lit?"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def harbour(browser: Browser) -> Iterator[LightPortal]:
    text = f"# {TITLE}\n\n{FACT}."
    with library({f"{TITLE}.md": text}) as made, light_portal(made, browser) as portal:
        yield portal


@pytest.fixture
def portal(harbour: LightPortal) -> Iterator[LightPortal]:
    harbour.plays([f"{FACT} [1]."])
    yield harbour
    harbour.close_windows()
    harbour.expect_nothing_to_go_on()
    assert harbour.refused == []


def width_of(pane: Locator) -> float:
    box = pane.bounding_box()
    assert box
    return box["width"]


def expect_width(pane: Locator, width: float) -> None:
    wait_until(
        lambda: abs(width_of(pane) - width) <= 1, within_s=20, complaint=f"not {width} px wide"
    )


def drag(page: Page, separator: Locator, by: int) -> None:
    box = separator.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=4)
    page.mouse.up()


def test_panes_keep_widths_set_by_pointer_and_arrow_keys(portal: LightPortal) -> None:
    page = portal.open_window(viewport={"width": 1600, "height": 900}).page
    chat = ChatPage(page)
    chat.open_sources(chat.begin(QUESTION).get_by_test_id("citation-marker").first)
    items, side = page.locator("#conversations"), page.locator("#chat-side")
    of_list = page.get_by_role("separator", name="Width of the conversation list")
    of_side = page.get_by_role("separator", name="Width of the source pane")
    before = width_of(items), width_of(side)
    drag(page, of_list, 60)
    drag(page, of_side, -80)
    expect_width(items, before[0] + 60)
    expect_width(side, before[1] + 80)

    dragged = width_of(items), width_of(side)
    of_list.focus()
    page.keyboard.press("ArrowLeft")
    of_side.focus()
    page.keyboard.press("ArrowLeft")
    expect_width(items, dragged[0] - 24)
    expect_width(side, dragged[1] + 24)
    expect(of_side).to_have_attribute("aria-valuenow", str(round(width_of(side))))

    drag(page, of_list, -900)
    expect_width(items, 200)
    kept = width_of(side)
    page.reload()
    expect(chat.panel).to_be_visible()
    expect_width(items, 200)
    expect_width(side, kept)

    page.locator("[data-toggle-list]").click()
    expect(items).to_be_hidden()
    page.reload()
    expect(items).to_be_hidden()
    page.locator("[data-toggle-list]").click()
    expect(items).to_be_visible()
    expect_width(items, 200)


def test_list_is_changed_without_leaving_the_conversation(portal: LightPortal) -> None:
    page = portal.open_window(viewport={"width": 1440, "height": 500}).page
    chat = ChatPage(page)
    chat.begin("And who lights the lamp?")
    chat.open_sources(chat.begin(QUESTION).get_by_test_id("citation-marker").first)
    for _ in range(4):
        chat.ask(QUESTION)
    address, pinned = page.url, page.get_by_test_id("pinned-conversations")
    chat.field.fill("A draft")
    page.evaluate("window.scrollTo(0, 200)")
    page.evaluate("window.isSamePage = true")

    tools = page.locator("#conversations .conversation-row:has([aria-current])")
    tools.get_by_test_id("pin-conversation").focus()
    page.keyboard.press("Enter")
    expect(pinned).to_contain_text(QUESTION)
    expect(tools.get_by_test_id("pin-conversation")).to_be_focused()
    tools.get_by_test_id("rename-conversation").click()
    for title in (" ", "Dusk"):
        page.locator("#new-title").fill(title)
        page.keyboard.press("Enter")
        dialog = page.get_by_test_id("rename-dialog")
        expect(dialog.get_by_role("alert") if title == " " else pinned).to_be_visible()
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.locator("#conversation-title")).to_have_text("Dusk")
    expect(page).to_have_title("Dusk · Knowledge portal")
    expect(tools.get_by_test_id("rename-conversation")).to_be_focused()
    other = page.get_by_test_id("conversation-row").filter(has_text="who lights")
    other.hover()
    other.get_by_test_id("delete-conversation").click()
    expect(other).to_have_count(0)
    expect(page.locator(".conversation-row .document-title:focus")).to_be_visible()
    expect(page.get_by_test_id("undo-delete")).to_be_visible()

    expect(chat.panel).to_be_visible()
    expect(chat.field).to_have_value("A draft")
    assert page.evaluate("[window.isSamePage, window.scrollY]") == [True, 200]
    assert page.url == address


def test_head_of_the_list_stays_while_the_list_scrolls(portal: LightPortal) -> None:
    user = Portal.of(portal.services).user("mia")
    oldest, *_ = [conversations.create(portal.services, user).id for _ in range(20)]
    for size in (WIDE, PHONE):
        page = portal.open_window(user="mia", viewport=size).page
        page.goto(f"/chat/{oldest}#conversations")
        page.get_by_test_id("conversation-row").last.scroll_into_view_if_needed()
        assert page.locator("#conversations").evaluate("(list) => list.scrollTop > 0")
        for name in ("new-conversation", "conversation-search"):
            expect(page.get_by_test_id(name)).to_be_in_viewport(ratio=0.9)


def test_window_that_gets_the_focus_shows_messages_sent_elsewhere(portal: LightPortal) -> None:
    page, other = portal.open_window().page, portal.open_window().page
    chat, same = ChatPage(page), ChatPage(other)
    chat.begin(QUESTION)
    other.goto(page.url)
    same.field.fill("A draft")
    kept = same.answers.first
    kept.evaluate("answer => answer.dataset.kept = 'yes'")
    comes_to_the_front = "window.dispatchEvent(new Event('focus'))"
    with other.expect_response(page.url):
        other.evaluate(comes_to_the_front)
    expect(kept).to_have_attribute("data-kept", "yes")
    chat.ask("And who lights it?")
    # Regenerating an earlier answer would take the later ones away.
    expect(chat.answers.first.get_by_test_id("retry-answer")).to_be_hidden()
    expect(chat.answers.last.get_by_test_id("retry-answer")).to_be_visible()
    other.evaluate(comes_to_the_front)
    expect(same.answers).to_have_count(2)
    expect(same.messages.nth(2)).to_contain_text("And who lights it?")
    expect(same.field).to_have_value("A draft")
    same.ask("At dusk?")
    page.evaluate(comes_to_the_front)
    expect(chat.answers).to_have_count(3)
    # A question that is being edited is not removed.
    chat.messages.nth(4).hover()
    chat.messages.nth(4).get_by_test_id("edit-question").click()
    page.locator(".chat-form-edit textarea").fill("At dawn?")
    same.ask("And then?")
    page.evaluate(comes_to_the_front)
    page.keyboard.press("Enter")
    expect(chat.messages.nth(4)).to_contain_text("At dawn?")


def test_phone_bar_opens_each_pane_and_escape_or_back_closes_it(portal: LightPortal) -> None:
    page = portal.open_window(viewport=PHONE).page
    chat = ChatPage(page)
    chat.begin(QUESTION)
    items, side = page.locator("#conversations"), page.locator("#chat-side")
    bar = page.get_by_test_id("chat-bar")
    expect(bar).to_be_in_viewport()
    sheets = {"Conversations": items, "Sources": side, "Documents": side}
    for name, sheet in sheets.items():
        for leave in (lambda: page.keyboard.press("Escape"), page.go_back):
            bar.get_by_role("link", name=name).click()
            expect(sheet).to_be_in_viewport()
            expect(bar).to_be_in_viewport()
            leave()
            expect(sheet).to_be_hidden()
            expect(chat.answers.last).to_contain_text(FACT)

    # From one sheet to another, and to the conversation.
    bar.get_by_role("link", name="Conversations").click()
    expect(items).to_contain_text(QUESTION)
    bar.get_by_role("link", name="Sources").click()
    expect(side).to_contain_text(TITLE)
    expect(items).to_be_hidden()
    bar.get_by_role("link", name="Ask").click()
    expect(side).to_be_hidden()
    expect(chat.field).to_be_in_viewport()

    # No label wraps at 400 % zoom.
    page.set_viewport_size({"width": 320, "height": 256})
    lines = bar.get_by_role("link").evaluate_all(
        """(links) => links.map((link) => {
          const name = document.createRange();
          name.selectNode(link.lastChild);
          return name.getClientRects().length;
        })"""
    )
    assert lines == [1, 1, 1, 1]


def test_question_waits_while_an_answer_is_being_written(portal: LightPortal) -> None:
    rest = Until()
    portal.plays([f"{FACT} [1].", rest], ["It burns oil [1]."])
    page = portal.open_window(viewport=WIDE).page
    chat = ChatPage(page)
    answer = chat.begin_without_waiting(QUESTION)
    expect(answer).to_contain_text(FACT)
    chat.field.fill("What does the lamp burn?")
    chat.field.press("Enter")
    expect(page.locator("#chat-waiting")).to_be_visible()
    expect(chat.field).to_have_value("What does the lamp burn?")
    expect(chat.answers).to_have_count(1)
    assert len(portal.chat.requests) == 1

    rest.event.set()
    expect(chat.answers).to_have_count(2)
    expect(chat.answers.last).to_contain_text("It burns oil")
    expect(chat.messages.nth(2)).to_contain_text("What does the lamp burn?")
    expect(chat.field).to_have_value("")
    expect(page.locator("#chat-waiting")).to_be_hidden()


def test_print_shows_only_the_conversation_dark_on_light(portal: LightPortal) -> None:
    page = portal.open_window(viewport={"width": 794, "height": 1123}, color_scheme="dark").page
    answer = ChatPage(page).begin(QUESTION)
    page.emulate_media(media="print")
    expect(answer).to_contain_text(FACT)
    for name in ("banner", "form", "contentinfo"):
        expect(page.get_by_role(name)).to_have_count(0)
    expect(page.get_by_test_id("chat-bar")).to_be_hidden()
    ink = answer.evaluate("(element) => getComputedStyle(element).color.match(/\\d+/g).map(Number)")
    assert max(ink[:3]) < 100


def test_unknown_reader_name_leaves_the_conversation_open(portal: LightPortal) -> None:
    Portal.of(portal.services).user("eve")
    page = portal.open_window().page
    chat = ChatPage(page)
    chat.begin(QUESTION)
    conversation = page.url
    page.locator(".chat-head").get_by_test_id("share-conversation").click()
    name = page.get_by_test_id("share-name")
    name.fill("nobody")
    name.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("There is no user “nobody”.")
    expect(name).to_be_focused()
    assert page.url == conversation
    expect(chat.answers.last).to_contain_text(FACT)

    name.fill("eve")
    name.press("Enter")
    expect(page.get_by_test_id("notification")).to_contain_text("eve can now read this")
    expect(page.get_by_test_id("readers")).to_contain_text("eve")
    expect(page.get_by_test_id("share-link")).to_have_value(re.compile("/shared/"))
    assert page.url == conversation
