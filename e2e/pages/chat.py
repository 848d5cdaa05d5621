"""Page object of conversations."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


class ChatPage:
    """The list of conversations and the open one."""

    def __init__(self, page: Page, *, javascript: bool = True) -> None:
        self.page = page
        self.javascript = javascript

    @property
    def messages(self) -> Locator:
        return self.page.get_by_test_id("message")

    @property
    def answers(self) -> Locator:
        return self.page.locator("[data-testid=message][data-role=assistant]")

    @property
    def card(self) -> Locator:
        return self.page.get_by_test_id("citation-card")

    @property
    def panel(self) -> Locator:
        return self.page.get_by_test_id("citation-panel")

    @property
    def field(self) -> Locator:
        return self.page.locator("#chat-input")

    def open_new(self) -> None:
        """Open a new conversation, without a question."""
        self.page.goto("/chat")
        self.page.get_by_test_id("new-conversation").click()
        expect(self.page.locator("#messages")).to_be_attached()
        # Enter sends and drafts are kept once the scripts have run.
        self.page.wait_for_load_state()

    def begin(self, question: str) -> Locator:
        """Ask the first question of a new conversation; return the finished answer."""
        self.page.goto("/chat")
        return self._send(question, answer_count=1)

    def begin_without_waiting(self, question: str) -> Locator:
        """Ask the first question of a new conversation; return the answer being written."""
        self.page.goto("/chat")
        self.field.fill(question)
        self.field.press("Enter")
        expect(self.answers).to_have_count(1)
        return self.answers.last

    def ask(self, question: str) -> Locator:
        """Ask in the open conversation; return the answer."""
        return self._send(question, answer_count=self.answers.count() + 1)

    def _send(self, question: str, answer_count: int) -> Locator:
        self.field.fill(question)
        if self.javascript:
            self.field.press("Enter")
        else:
            self.page.locator(".chat-form [data-testid=chat-send]").last.click()
        expect(self.answers).to_have_count(answer_count)
        answer = self.answers.last
        expect(answer).not_to_have_attribute("data-status", "streaming")
        return answer

    def open_sources(self, marker: Locator) -> Locator:
        """Click a marker; return its source."""
        marker.click()
        source = self.panel.get_by_test_id("citation-source").first
        expect(source).to_be_visible()
        return source

    def follow(self, source: Locator) -> Locator:
        """Open a source's document; return the highlighted words."""
        source.get_by_test_id("source-link").click()
        quote = self.page.locator("mark.quote").first
        expect(quote).to_be_in_viewport()
        return quote

    def back(self) -> None:
        """Return from a document to the conversation that cites it."""
        self.page.locator(".crumbs a").first.click()
        expect(self.answers.first).to_be_visible()

    def open_switches(self) -> Locator:
        """Open the document switches of this conversation; return their list."""
        self.page.get_by_test_id("open-selection").click()
        drawer = self.page.get_by_test_id("selection-drawer")
        expect(drawer).to_be_visible()
        return drawer

    def switch(self, title: str, state: str) -> Locator:
        """Set a document's switch in this conversation; return its row."""
        drawer = self.open_switches()
        row = drawer.get_by_test_id("switch-row").filter(has_text=title)
        if row.count() == 0:
            # Not among the first rows: typing filters the list; without JavaScript, Enter does.
            search = drawer.get_by_role("searchbox")
            search.fill(title)
            if not self.javascript:
                search.press("Enter")
        row.get_by_test_id("selection-toggle").click()
        is_on = "true" if state == "on" else "false"
        expect(row.get_by_test_id("selection-toggle")).to_have_attribute("aria-checked", is_on)
        return row

    def close_switches(self, conversation: str) -> None:
        if self.javascript:
            self.page.keyboard.press("Escape")
            expect(self.page.get_by_test_id("selection-drawer")).to_have_count(0)
        else:
            self.page.goto(conversation)
