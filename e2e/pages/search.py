"""Page object of the search page."""

from __future__ import annotations

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect


class SearchPage:
    """The results of a search and their explanations."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def ask(self, question: str, **more: str) -> SearchPage:
        """Open the results by their address, as a bookmark does."""
        self.page.goto("/search?" + urlencode({"q": question, **more}))
        expect(self.page.get_by_test_id("search-input")).to_have_value(question)
        for fold in self.page.locator("[data-testid=weaker]:not([open]) > summary").all():
            fold.click()
        return self

    @property
    def results(self) -> Locator:
        return self.page.get_by_test_id("search-result")

    @property
    def correction(self) -> Locator:
        return self.page.get_by_test_id("correction")

    def result(self, title: str) -> Locator:
        return self.results.filter(has=self.page.get_by_role("link", name=title, exact=True))

    def explain(self, title: str) -> Locator:
        'Open "Why this result?" of a result and return it.'
        why = self.result(title).first.get_by_test_id("why")
        why.locator("summary").click()
        return why

    def open_explanation(self) -> Locator:
        'Open "Search details" and return it.'
        explanation = self.page.get_by_test_id("explanation")
        explanation.locator("summary").click()
        return explanation

    def ask_why_not(self, title: str) -> Locator:
        """Ask why a document is not among the results; return the answer."""
        asked = self.page.get_by_test_id("why-not")
        if not self.page.get_by_test_id("why-not-title").is_visible():
            asked.locator("summary").click()
        self.page.get_by_test_id("why-not-title").fill(title)
        self.page.get_by_test_id("why-not-ask").click()
        answer = self.page.get_by_test_id("why-not-answer")
        matches = self.page.get_by_test_id("why-not-matches")
        none = self.page.get_by_test_id("why-not-none")
        expect(answer.or_(matches).or_(none)).to_be_visible()
        return answer
