"""Ask, open a source, follow it to the document, disable the document and ask again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.chat import ChatPage
from e2e.pages.portal import PortalPages

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Lesson:
    """A document used by one journey only, so that other journeys' documents cannot answer."""

    title: str
    text: str
    question: str
    fact: str


LESSONS = {
    ("en", True): Lesson(
        "Rules of the apiary",
        "# Rules of the apiary\n\nThe beehives are opened only between ten and noon. Whoever opens "
        "a beehive wears a veil.\n\nHoney is harvested in July and stored in glass jars.",
        "When are the beehives opened?",
        "between ten and noon",
    ),
    ("en", False): Lesson(
        "Village bakery",
        "# Village bakery\n\nThe stone oven is heated with beech wood from four in the morning."
        "\n\nRye bread is sold on Thursdays, and costs three crowns a loaf.",
        "Which wood heats the stone oven?",
        "beech wood",
    ),
    ("zh-CN", True): Lesson(
        "茶园采摘规定",
        "# 茶园采摘规定\n\n春茶在清明前五天开始采摘，每人每天最多采两公斤。\n\n"
        "采下的茶叶当晚必须炒制。",
        "春茶什么时候开始采摘？",
        "清明前五天",
    ),
    ("zh-CN", False): Lesson(
        "渡船须知",
        "# 渡船须知\n\n渡船在风力超过七级时停航。\n\n第一班渡船早上六点半开出，自行车另收两元。",
        "渡船在什么风力时停航？",
        "七级",
    ),
}

# Tells whether the final mark, which has no direction of its own, is left of the first letter.
_ENDS_LEFT = """(element) => {
  const words = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
  const left = (from) => {
    const range = document.createRange();
    range.setStart(words, from);
    range.setEnd(words, from + 1);
    return range.getBoundingClientRect().left;
  };
  return left(words.data.search(/[.?]/)) < left(words.data.search(/\\S/));
}"""


def library_with(portal: PortalPages, folder: Path, lesson: Lesson) -> None:
    portal.sign_in("admin", PASSWORD)
    path = folder / f"{lesson.title}.md"
    path.write_text(lesson.text, encoding="utf-8")
    portal.upload(path)
    portal.wait_until_ready([lesson.title])


@pytest.mark.parametrize("javascript", [True, False], ids=["js", "no-js"])
@pytest.mark.parametrize("language", ["zh-CN", "en"])
def test_answer_rests_on_what_is_switched_on(
    open_portal: OpenPortal, tmp_path: Path, language: str, javascript: bool
) -> None:
    lesson = LESSONS[language, javascript]
    portal = open_portal(language, javascript=javascript)
    library_with(portal, tmp_path, lesson)
    page, chat = portal.page, ChatPage(portal.page, javascript=javascript)

    answer = chat.begin(lesson.question)
    expect(answer).to_contain_text(lesson.fact)
    conversation = page.url.partition("#")[0]
    marker = answer.get_by_test_id("citation-marker").first
    if javascript:
        marker.hover()
        expect(chat.card).to_contain_text(lesson.title)
        expect(chat.card).to_contain_text("%")
    source = chat.open_sources(marker)
    expect(source).to_contain_text(lesson.title)
    expect(chat.follow(source)).to_contain_text(lesson.fact)
    chat.back()

    row = chat.switch(lesson.title, "off")
    expect(row.get_by_test_id("selection-toggle")).to_have_attribute("aria-checked", "false")
    chat.close_switches(conversation)
    again = chat.ask(lesson.question)
    expect(again).not_to_contain_text(lesson.fact)
    expect(again).not_to_contain_text(lesson.title)

    elsewhere = chat.begin(lesson.question)
    expect(elsewhere).to_contain_text(lesson.fact)

    page.goto(conversation)
    expect(chat.messages).to_have_count(4)
    expect(chat.answers.first).to_contain_text(lesson.fact)
    expect(
        chat.open_sources(chat.answers.first.get_by_test_id("citation-marker").first)
    ).to_contain_text(lesson.title)
    assert portal.console_errors == []


def test_switch_on_the_list_of_documents_works_by_keyboard(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    lesson = Lesson("Keyboard switch", "The piano is tuned every spring.", "", "")
    portal = open_portal("en")
    library_with(portal, tmp_path, lesson)
    row = portal.row(lesson.title)
    toggle = row.get_by_test_id("selection-toggle")
    expect(toggle).to_have_attribute("aria-checked", "true")
    toggle.focus()
    portal.page.keyboard.press("Space")
    expect(toggle).to_have_attribute("aria-checked", "false")
    expect(row.get_by_test_id("selection-cause")).to_have_text("Off (your default)")
    expect(toggle).to_be_focused()
    portal.page.reload()
    expect(toggle).to_have_attribute("aria-checked", "false")


def test_enter_that_ends_a_composition_does_not_send(open_portal: OpenPortal) -> None:
    portal = open_portal("zh-CN")
    portal.sign_in("admin", PASSWORD)
    chat = ChatPage(portal.page)
    chat.open_new()
    chat.field.fill("珊瑚")
    for init in ({"isComposing": True}, {"keyCode": 229}):
        chat.field.dispatch_event("keydown", {"key": "Enter", "bubbles": True, **init})
    chat.field.press("Shift+Enter")
    expect(chat.field).to_have_value("珊瑚\n")
    expect(chat.messages).to_have_count(0)
    chat.field.press("Enter")
    expect(chat.messages).to_have_count(2)
    assert portal.console_errors == []


def test_a_draft_survives_other_pages_a_reload_and_a_lost_session(open_portal: OpenPortal) -> None:
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    page, chat = portal.page, ChatPage(portal.page)
    chat.open_new()
    address, question = page.url, "When do puffins nest?"
    chat.field.fill(question)
    page.goto("/documents")
    page.goto(address)
    expect(chat.field).to_have_value(question)
    page.reload()
    expect(chat.field).to_have_value(question)
    page.context.clear_cookies()
    page.reload()
    page.wait_for_url("**/login**")
    portal.fill_sign_in("admin", PASSWORD)
    page.wait_for_url(address)
    expect(chat.field).to_have_value(question)
    chat.field.press("Enter")
    expect(chat.messages).to_have_count(2)
    page.reload()
    expect(chat.field).to_have_value("")


def test_answer_is_retried_edited_and_judged(open_portal: OpenPortal, tmp_path: Path) -> None:
    lesson = Lesson(
        "Windmill",
        "# Windmill\n\nThe sails of the windmill are greased with tallow each autumn.",
        "With what are the sails greased?",
        "tallow",
    )
    portal = open_portal("en")
    library_with(portal, tmp_path, lesson)
    page, chat = portal.page, ChatPage(portal.page)
    answer = chat.begin(lesson.question)
    answer.get_by_test_id("feedback-useful").click()
    expect(answer.get_by_test_id("feedback-useful")).to_have_attribute("aria-pressed", "true")
    first = answer.get_attribute("id")
    answer.get_by_test_id("retry-answer").click()
    expect(page.locator(f"#{first}")).to_have_count(0)
    expect(chat.answers).to_have_count(1)
    expect(chat.answers.last).to_contain_text("tallow")
    page.get_by_test_id("edit-question").click()
    field = page.locator(".chat-form-edit textarea")
    field.fill("When are the sails of the windmill greased?")
    field.press("Enter")
    expect(chat.messages).to_have_count(2)
    expect(chat.messages.first).to_contain_text("When are the sails")
    expect(chat.answers.last).to_contain_text("autumn")
    chat.answers.last.get_by_test_id("open-replay").click()
    expect(page.get_by_test_id("selection-hash")).to_have_text(re.compile("[0-9a-f]{64}"))


def test_source_has_an_address_that_back_and_forward_return_to(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    lesson = Lesson(
        "Lighthouse",
        "# Lighthouse\n\nThe lamp of the lighthouse turns once in nine seconds.",
        "How fast does the lamp of the lighthouse turn?",
        "nine seconds",
    )
    portal = open_portal("en")
    library_with(portal, tmp_path, lesson)
    page, chat = portal.page, ChatPage(portal.page)
    marker = chat.begin(lesson.question).get_by_test_id("citation-marker").first
    conversation = page.url
    chat.open_sources(marker)
    expect(chat.panel.locator("mark.quote").first).to_be_in_viewport()
    expect(page).to_have_url(re.compile(re.escape(f"{conversation}?source=")))
    page.go_back()
    expect(chat.panel).to_have_count(0)
    expect(page).to_have_url(conversation)
    page.go_forward()
    expect(chat.panel).to_be_visible()
    page.reload()
    expect(chat.panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(chat.panel).to_have_count(0)
    expect(marker).to_be_focused()
    expect(page).to_have_url(conversation)
    assert portal.console_errors == []


def test_right_to_left_text_is_shown_right_to_left(open_portal: OpenPortal, tmp_path: Path) -> None:
    path = tmp_path / "leave.txt"
    path.write_text("החופשה השנתית היא עשרים יום.", encoding="utf-8")
    portal = open_portal("en")
    portal.sign_in("admin", PASSWORD)
    portal.upload(path)
    portal.wait_until_ready(["leave"])
    chat = ChatPage(portal.page)
    answer = chat.begin("מהי החופשה השנתית?")
    page = portal.page
    texts = [
        page.locator("#conversation-title"),
        page.locator(".question-text"),
        answer.locator("p", has_text="עשרים"),
    ]
    for text in texts:
        assert text.evaluate(_ENDS_LEFT)
    chat.follow(chat.open_sources(answer.locator(".citation-marker").first))
    assert page.locator(".passage-text p").first.evaluate(_ENDS_LEFT)


def test_wide_table_shows_the_answering_cell_and_is_reachable_by_keyboard(
    open_portal: OpenPortal, tmp_path: Path, assert_accessible: Callable[[Page], None]
) -> None:
    path = tmp_path / "telescopes.csv"
    path.write_text(
        "Model,Name,Aperture,Focal ratio,Mount,Weight,Finder,Eyepieces,Warranty (months),State\n"
        "TS-1,Dobson telescope,200 mm,f/6,rocker box,19 kg,red dot,two,36,in stock\n"
        "TS-2,Newton telescope,150 mm,f/5,equatorial,22 kg,red dot,two,24,in stock\n",
        encoding="utf-8",
    )
    portal = open_portal("en", viewport={"width": 390, "height": 844})
    portal.sign_in("admin", PASSWORD)
    portal.upload(path)
    portal.wait_until_ready(["telescopes"])
    answer = ChatPage(portal.page).begin("How long is the warranty of the Dobson telescope TS-1?")
    marked = answer.locator("td", has_text="36")
    expect(marked.locator("strong")).to_be_visible()
    for cell in (marked, answer.locator("td", has_text="TS-1")):
        expect(cell).to_be_in_viewport(ratio=0.9)
    portal.page.reload()
    expect(marked).to_be_in_viewport(ratio=0.9)
    assert_accessible(portal.page)
    answer.locator(".citation-marker").first.hover()
    card = portal.page.get_by_test_id("citation-card")
    expect(card).to_contain_text("Warranty (months): 36")
    expect(card).to_be_in_viewport(ratio=0.99)
    assert card.locator("blockquote").evaluate("it => it.scrollWidth <= it.clientWidth")
    portal.page.goto("/search?q=warranty+of+the+dobson+telescope")
    table = portal.page.locator(".result-table").first
    assert table.evaluate("it => it.scrollWidth > it.clientWidth")
    assert_accessible(portal.page)
