"""The chat page stays correct, and leaves nothing running, when the model endpoint misbehaves."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from e2e.light_portal import Library, LightPortal, library, light_portal
from e2e.pages.chat import ChatPage
from e2e.test_chat_journey import Lesson
from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.domain.answering import ChatEvent, ChatRequest
from portal.services import Services
from portal.services.answers import answering, writers
from portal.services.answers.retrieving import Asked, Retrieved, retrieve
from portal.services.people import accounts
from tests.factories.servers.chat import (
    Call,
    Die,
    Hangup,
    Pause,
    Raw,
    Status,
    Step,
    Until,
    fake_chat,
)

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Words:
    """The documents and the page's words in one language."""

    title: str
    text: str
    question: str
    begins: str
    goes_on: str
    stopped: str


WORDS = {
    "en": Words(
        title="Office handbook",
        text="# Office handbook\n\nThe office closes at six. Visitors sign in at the front desk.",
        question="When does the office close?",
        begins="The office closes at six",
        goes_on="Visitors sign in at the front desk",
        stopped="Stopped before finishing.",
    ),
    "zh-CN": Words(
        title="办公室手册",
        text="# 办公室手册\n\n办公室晚上六点关门。访客须在前台登记。",
        question="办公室什么时候关门？",
        begins="办公室晚上六点关门",
        goes_on="访客须在前台登记",
        stopped="回答未完成，已停止。",
    ),
}
EN, ZH = WORDS["en"], WORDS["zh-CN"]
QUOTED = Lesson(
    "Annual leave", "Employees may take fifteen days of annual leave.",
    "How many days of annual leave may employees take?", "fifteen days",
)  # fmt: skip
OTHERS = {f"other-{number}.txt": f"Shelf {number} holds maps." for number in range(18)}

OpenPortal = Callable[..., LightPortal]


@pytest.fixture(scope="module")
def documents() -> Iterator[Library]:
    texts = {f"{words.title}.md": words.text for words in (*WORDS.values(), QUOTED)}
    with library(texts | OTHERS) as made:
        yield made


@pytest.fixture(scope="module")
def running_portal(documents: Library, browser: Browser) -> Iterator[LightPortal]:
    with light_portal(documents, browser) as portal:
        yield portal


@pytest.fixture
def portal_with(running_portal: LightPortal) -> Iterator[OpenPortal]:
    """Yield a function that opens a portal whose endpoint plays these scripts, one a request.

    Check after each test that no answer is still being written, no script failed and no window
    requested anything from another host.
    """

    def make(*scripts: list[Step]) -> LightPortal:
        running_portal.plays(*scripts)
        return running_portal

    yield make
    running_portal.close_windows()
    running_portal.expect_nothing_to_go_on()
    assert running_portal.refused == []
    assert [
        request for request in running_portal.requests if not request.startswith(running_portal.url)
    ] == []


def expect_unavailable(answer: Locator, words: Words, kept: str = "") -> None:
    """Expect the error, the text received so far and the search results."""
    expect(answer).to_have_attribute("data-status", "unavailable")
    notice = answer.get_by_test_id("answer-unavailable")
    expect(notice).to_contain_text("Answer unavailable.")
    expect(notice).to_contain_text("These passages were found for your question")
    expect(answer.get_by_test_id("answer-text")).to_contain_text(kept)
    hit = answer.get_by_test_id("near-source").filter(has_text=words.title)
    expect(hit).to_contain_text(words.begins)


# --- an endpoint that works -----------------------------------------------------------------------


@pytest.mark.parametrize("language", WORDS)
def test_answer_is_read_while_it_is_written_and_its_markers_become_links(
    portal_with: OpenPortal, language: str
) -> None:
    words, rest = WORDS[language], Until()
    script: list[Step] = [words.begins[:4], words.begins[4:], " [", "1]. ", rest, words.goes_on]
    portal = portal_with([*script, " 【1】."])
    window = portal.open_window(language)
    chat = ChatPage(window.page)
    answer = chat.begin_without_waiting(words.question)
    expect(answer).to_contain_text(f"{words.begins} [1]")
    expect(answer).to_have_attribute("data-status", "streaming")
    expect(answer).not_to_contain_text(words.goes_on)
    rest.event.set()
    expect(answer).to_have_attribute("data-status", "done")
    expect(answer).to_contain_text(words.goes_on)
    markers = answer.get_by_test_id("citation-marker")
    expect(markers).to_have_text(["[1]", "[1]"])
    markers.first.hover()
    expect(chat.card).to_contain_text(words.begins)
    source = chat.open_sources(markers.first)
    expect(source).to_contain_text(words.title)
    expect(chat.follow(source)).to_contain_text(words.begins)


def test_list_counts_the_messages_of_a_follow_up(portal_with: OpenPortal) -> None:
    chat = ChatPage(portal_with([EN.begins]).open_window().page)
    row = chat.page.get_by_test_id("conversation-row").filter(
        has=chat.page.locator("[aria-current]")
    )
    chat.begin(EN.question)
    expect(row).to_contain_text("2 messages")
    chat.ask(EN.question)
    expect(row).to_contain_text("4 messages")


def test_model_that_searches_again_shows_it_on_the_page(portal_with: OpenPortal) -> None:
    rest = Until()
    portal = portal_with([Call("visitors front desk")], [f"{EN.goes_on} [1]. ", rest, "So it is."])
    chat = ChatPage(portal.open_window().page)
    answer = chat.begin_without_waiting(EN.question)
    searched = answer.get_by_test_id("searched-for")
    expect(searched).to_have_text("Searched for: visitors front desk")
    expect(answer).to_contain_text(EN.goes_on)
    expect(answer).to_have_attribute("data-status", "streaming")
    rest.event.set()
    expect(answer).to_have_attribute("data-status", "done")
    expect(searched).to_have_text("Searched for: visitors front desk")
    expect(answer.get_by_test_id("citation-marker")).to_have_text("[1]")
    assert len(portal.chat.requests) == 2


# --- an endpoint that fails -----------------------------------------------------------------------


def test_silent_endpoint_falls_back_to_search_results(portal_with: OpenPortal) -> None:
    portal = portal_with([Pause(), "too late"])
    chat = ChatPage(portal.open_window().page)
    answer = chat.begin_without_waiting(EN.question)
    expect(answer.locator(".answer-waiting")).to_be_visible()
    expect(answer).to_have_attribute("aria-busy", "true")
    expect_unavailable(answer, EN)
    portal.expect_nothing_to_go_on()
    chat.page.reload()
    expect_unavailable(chat.answers.last, EN)


@pytest.mark.parametrize("end", [Die(), Hangup()], ids=["cut", "hung-up"])
def test_interrupted_answer_is_kept_as_failed_with_search_results(
    portal_with: OpenPortal, end: Step
) -> None:
    portal = portal_with([f"{EN.begins} [1]. ", "Visitors ", Pause(0.3), end])
    chat = ChatPage(portal.open_window().page)
    answer = chat.begin(EN.question)
    expect_unavailable(answer, EN, kept=f"{EN.begins} [1]. Visitors")
    expect(answer.get_by_test_id("citation-marker")).to_have_text("[1]")
    chat.page.reload()
    expect_unavailable(chat.answers.last, EN, kept=f"{EN.begins} [1]. Visitors")
    source = chat.open_sources(chat.answers.last.get_by_test_id("citation-marker"))
    expect(source).to_contain_text(EN.title)


@pytest.mark.parametrize(
    ("language", "question", "fact", "notice", "writer"),
    [
        ("en", QUOTED.question, QUOTED.fact, "The documents are quoted instead", "Quotations only"),
        ("zh-CN", ZH.question, ZH.begins, "以下改为引用文档原文", "仅引用"),
    ],
    ids=["en", "zh-CN"],
)
def test_interrupted_answer_is_replaced_by_quotations_on_the_page(
    portal_with: OpenPortal, language: str, question: str, fact: str, notice: str, writer: str
) -> None:
    portal = portal_with(["Perhaps [1]. ", "Or ", Pause(0.3), Die()])
    answer = ChatPage(portal.open_window(language).page).begin(question)
    expect(answer.get_by_test_id("answer-unavailable")).to_contain_text(notice)
    expect(answer.get_by_test_id("answer-text")).to_contain_text(fact)
    expect(answer).not_to_contain_text("Perhaps")
    expect(answer.get_by_test_id("answer-writer")).to_contain_text(writer)


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ([f"{EN.begins} [1]. ", Raw(b"data: {not json\n\n"), Pause()], EN.begins),
        ([Raw(b'data: {"choices": [{"delta": {"content": 7'), Hangup()], ""),
        ([Raw(b"\xff\xfe\x00<html>event: done\n\n" * 3), Hangup()], ""),
        ([Status(200, b"<html>Sign in</html>", {"Content-Type": "text/html"})], ""),
    ],
    ids=["no-json-after-text", "cut-json", "bytes", "html"],
)
def test_invalid_protocol_ends_the_answer_and_shows_search_results(
    portal_with: OpenPortal, script: list[Step], kept: str
) -> None:
    portal = portal_with(script)
    chat = ChatPage(portal.open_window().page)
    answer = chat.begin(EN.question)
    expect_unavailable(answer, EN, kept)
    expect(answer).not_to_contain_text("html")
    portal.expect_nothing_to_go_on()


# --- an endpoint that lies ------------------------------------------------------------------------


def test_false_markers_and_addresses_are_not_rendered(portal_with: OpenPortal) -> None:
    with fake_chat() as evil:
        address = f"http://127.0.0.1:{evil.port}/secret"
        rest = Until()
        script: list[Step] = [
            f"{EN.begins} [1][7]. 【9】 ",
            f"![p](http://evil.example/p.png) ![q]({address}.png) ",
            rest,
            f"[press here]({address}) <img src={address}> <{address}> {address}",
            f"\n\n[1]: {address}\n\n[77](javascript:alert(1)) [^8] {EN.goes_on}.",
        ]
        portal = portal_with(script)
        chat = ChatPage(portal.open_window().page)
        answer = chat.begin_without_waiting(EN.question)
        expect(answer).to_contain_text(EN.begins)
        expect_nothing_foreign(answer)
        rest.event.set()
        expect(answer).to_have_attribute("data-status", "done")
        expect(answer).to_contain_text("press here")
        expect_nothing_foreign(answer)
        chat.page.reload()
        expect(chat.answers.last).to_contain_text(EN.goes_on)
        expect_nothing_foreign(chat.answers.last)
        expect(answer.get_by_test_id("citation-marker").first).to_have_text("[1]")
        assert evil.requests == []


def expect_nothing_foreign(answer: Locator) -> None:
    """Expect no tag that could load or link to anything, and no marker without a source."""
    text = answer.locator(".answer-text")
    expect(text.locator("img, iframe, script, link, object, svg image, [style]")).to_have_count(0)
    own = ("#source-", urlsplit(answer.page.url).path + "?source=")
    addresses = text.locator("a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
    assert [address for address in addresses if not address.startswith(own)] == []
    expect(text).not_to_have_text(re.compile(r"[【】]|\[\^?[789]"))


# --- a user who stops or leaves -------------------------------------------------------------------


@pytest.mark.parametrize("language", WORDS)
def test_stop_keeps_what_was_written_and_ends_the_request(
    portal_with: OpenPortal, language: str
) -> None:
    words = WORDS[language]
    portal = portal_with([f"{words.begins} [1].", Until(), "never"])
    chat = ChatPage(portal.open_window(language).page)
    answer = chat.begin_without_waiting(words.question)
    expect(answer).to_contain_text(f"{words.begins} [1].")
    chat.page.get_by_test_id("chat-stop").press("Enter")
    # The button disappears, and the keyboard focus moves to the field for the next question.
    chat.page.keyboard.type("more")
    expect(chat.field).to_have_value("more")
    expect(answer).to_have_attribute("data-status", "stopped")
    expect(answer).to_contain_text(words.begins)
    expect(answer).to_contain_text(words.stopped)
    expect(answer.get_by_test_id("citation-marker")).to_have_text("[1]")
    portal.expect_nothing_to_go_on()
    assert portal.chat.left == 1
    chat.page.reload()
    expect(chat.answers.last).to_contain_text(words.stopped)


@dataclass
class SlowSearch:
    """A search that blocks until the test releases it."""

    is_under_way: threading.Event
    may_end: threading.Event

    def retrieve(self, services: Services, asked: Asked) -> Retrieved:
        self.is_under_way.set()
        self.may_end.wait(20)
        return retrieve(services, asked)


@pytest.fixture
def slow_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowSearch]:
    slow = SlowSearch(threading.Event(), threading.Event())
    monkeypatch.setattr(answering, "retrieve", slow.retrieve)
    yield slow
    slow.may_end.set()


def stop_while_searching(
    chat: ChatPage, slow_search: SlowSearch, question: str = EN.question
) -> None:
    chat.page.goto("/chat")
    chat.field.fill(question)
    chat.field.press("Enter")
    stop = chat.page.get_by_test_id("chat-stop")
    expect(stop).to_be_visible()
    assert slow_search.is_under_way.wait(20)
    stop.click()
    expect(stop).to_be_hidden()
    slow_search.may_end.set()


def test_stop_before_the_first_word_shows_the_question_and_a_stopped_answer(
    portal_with: OpenPortal, slow_search: SlowSearch
) -> None:
    portal = portal_with([Until(), "never"])
    chat = ChatPage(portal.open_window().page)
    stop_while_searching(chat, slow_search)
    expect(chat.messages.first).to_contain_text(EN.question)
    expect(chat.answers).to_have_count(1)
    expect(chat.answers.last).to_have_attribute("data-status", "stopped")
    expect(chat.answers.last).to_contain_text(EN.stopped)
    portal.expect_nothing_to_go_on()


@pytest.fixture
def quoting(running_portal: LightPortal) -> Iterator[None]:
    """Answer by quotation, without a language model."""
    admin = accounts.find_user(running_portal.services, "admin")
    writers.choose_quotations(running_portal.services, admin)
    yield
    writers.follow_settings(running_portal.services, admin)


@pytest.fixture
def slow_quoting(monkeypatch: pytest.MonkeyPatch, quoting: None) -> Iterator[threading.Event]:
    """Yield the event that quotations wait for after their introduction."""
    may_go_on, stream = threading.Event(), ExtractiveChatModel.stream

    def pausing(model: ExtractiveChatModel, request: ChatRequest) -> Iterator[ChatEvent]:
        for event in stream(model, request):
            yield event
            may_go_on.wait(20)

    monkeypatch.setattr(ExtractiveChatModel, "stream", pausing)
    yield may_go_on
    may_go_on.set()


def test_question_of_a_page_left_early_is_kept_and_answered(
    portal_with: OpenPortal, slow_search: SlowSearch, quoting: None
) -> None:
    chat = ChatPage(portal_with().open_window().page)
    chat.page.goto("/chat")
    chat.field.fill(QUOTED.question)
    chat.field.press("Enter")
    assert slow_search.is_under_way.wait(20)
    chat.page.reload()
    expect(chat.field).to_have_value(QUOTED.question)
    slow_search.may_end.set()
    expect(chat.messages).to_have_count(2)
    expect(chat.answers.last).to_have_attribute("data-status", "done")
    expect(chat.answers.last).to_contain_text(QUOTED.fact)
    expect(chat.field).to_have_value("")


def test_quotations_are_finished_after_the_page_is_left(
    portal_with: OpenPortal, slow_quoting: threading.Event
) -> None:
    chat = ChatPage(portal_with().open_window().page)
    answer = chat.begin_without_waiting(QUOTED.question)
    expect(answer.locator(".answer-text")).not_to_be_empty()
    chat.page.reload()
    slow_quoting.set()
    expect(answer).to_have_attribute("data-status", "done")
    expect(answer).to_contain_text(QUOTED.fact)


def test_stopped_quotations_stay_stopped(
    portal_with: OpenPortal, slow_quoting: threading.Event
) -> None:
    chat = ChatPage(portal_with().open_window().page)
    answer = chat.begin_without_waiting(QUOTED.question)
    with chat.page.expect_response("**/stop"):
        chat.page.get_by_test_id("chat-stop").click()
    slow_quoting.set()
    expect(answer).to_have_attribute("data-status", "stopped")


def test_quotations_stopped_before_the_first_word_stay_stopped(
    portal_with: OpenPortal, slow_search: SlowSearch, slow_quoting: threading.Event
) -> None:
    chat = ChatPage(portal_with().open_window().page)
    with chat.page.expect_response("**/stop"):
        stop_while_searching(chat, slow_search, QUOTED.question)
    slow_quoting.set()
    expect(chat.answers).to_have_attribute("data-status", "stopped")


def test_text_typed_after_an_early_stop_is_not_lost(
    portal_with: OpenPortal, slow_search: SlowSearch
) -> None:
    portal = portal_with([Until(), "never"])
    chat = ChatPage(portal.open_window().page)
    chat.page.clock.install()
    stop_while_searching(chat, slow_search)
    chat.page.evaluate("document.body.dataset.stays = 'yes'")
    chat.field.fill("Something else")
    chat.page.clock.fast_forward(60_000)
    # Wait for a response: a pending navigation would have happened by then.
    chat.open_switches()
    expect(chat.page.locator("body[data-stays]")).to_be_attached()
    expect(chat.field).to_have_value("Something else")


def test_reload_while_an_answer_is_written_stays_at_its_end(portal_with: OpenPortal) -> None:
    lines = [f"{EN.begins}, rule {number}.\n\n" for number in range(40)]
    portal = portal_with([*lines, Until(), "never"])
    chat = ChatPage(portal.open_window(viewport={"width": 390, "height": 600}).page)
    answer = chat.begin_without_waiting(EN.question)
    expect(answer).to_contain_text("rule 38")
    chat.page.reload()
    expect(answer).to_have_attribute("data-status", "stopped")
    expect(answer).to_contain_text(EN.stopped)
    chat.page.wait_for_function(
        "document.querySelector('.message:last-child').getBoundingClientRect().bottom"
        " <= document.getElementById('ask-form').getBoundingClientRect().top + 1"
    )
    portal.expect_nothing_to_go_on()


def test_feedback_reasons_are_visible_on_a_phone(portal_with: OpenPortal) -> None:
    portal = portal_with([f"{EN.begins}, rule {number}.\n\n" for number in range(40)])
    # Playwright polls with a script that the page's content security policy would refuse.
    size = {"width": 390, "height": 600}
    chat = ChatPage(portal.open_window(viewport=size, bypass_csp=True).page)
    answer = chat.begin_without_waiting(EN.question)
    answer.get_by_test_id("feedback-not_useful").click()
    chat.page.wait_for_function(
        "document.querySelector('.feedback-reasons')?.getBoundingClientRect().bottom"
        " <= document.getElementById('ask-form').getBoundingClientRect().top + 1"
    )
    portal.expect_nothing_to_go_on()


def test_leaving_the_page_ends_the_request_and_its_threads(portal_with: OpenPortal) -> None:
    portal = portal_with([f"{EN.begins} [1].", Until(), "never"])
    portal.close_browsers()
    before = set(threading.enumerate())
    chat = ChatPage(portal.open_window().page)
    expect(chat.begin_without_waiting(EN.question)).to_contain_text(EN.begins)
    conversation = chat.page.url
    assert portal.chat.active == 1
    chat.page.close()
    portal.expect_nothing_to_go_on()
    assert portal.chat.left == 1
    portal.close_windows()
    portal.close_browsers()
    portal.expect_no_threads_but(before)
    again = ChatPage(portal.open_window().page)
    again.page.goto(conversation)
    expect(again.answers).to_have_attribute("data-status", "stopped")
    expect(again.answers).to_contain_text(EN.begins)
