"""Page object of the portal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

# Indexing uses the bundled model, on a machine that may be busy.
INDEXING_TIMEOUT_MS = 90_000
_PAUSE_MS = 250


class PortalPages:
    """A browser window on the portal."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.console_errors: list[str] = []
        page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        page.on("console", self._note_error)

    def _note_error(self, message: ConsoleMessage) -> None:
        # Tests provoke lost connections and error responses, which the browser reports.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.console_errors.append(message.text)

    def sign_in(self, name: str, password: str) -> None:
        self.page.goto("/documents")
        self.fill_sign_in(name, password)
        expect(self.page.get_by_test_id("document-list")).to_be_attached()
        # The list appears before the scripts that handle keys, files and clicks on it.
        self.page.wait_for_load_state()

    def fill_sign_in(self, name: str, password: str) -> None:
        form = self.page.get_by_test_id("login-form")
        form.locator("input[name=name]").fill(name)
        form.locator("input[name=password]").fill(password)
        form.locator("button[type=submit]").click()

    def upload(self, *paths: Path) -> None:
        """Choose files in the file picker; without JavaScript also submit the form."""
        self.page.goto("/documents")
        upload_input = self.page.get_by_test_id("upload-input")
        upload_input.set_input_files(list(paths))
        send = self.page.get_by_test_id("upload-button")
        if not self.has_javascript():
            send.click()

    def has_javascript(self) -> bool:
        """Return whether the page's own scripts ran."""
        return self.page.locator("html[data-js], html.js").count() > 0

    def row(self, title: str) -> Locator:
        return self.page.get_by_test_id("document-row").filter(
            has=self.page.get_by_role("link", name=title, exact=True)
        )

    def wait_until_ready(self, titles: Sequence[str]) -> None:
        for title in titles:
            row = self.row(title)
            if not self.has_javascript():
                self.reload_until(row, "ready")
            expect(row).to_have_attribute("data-status", "ready", timeout=INDEXING_TIMEOUT_MS)

    def reload_until(self, row: Locator, status: str) -> None:
        """Reload the list until a row has a status, as a user without JavaScript does."""
        for _ in range(INDEXING_TIMEOUT_MS // _PAUSE_MS):
            if row.get_attribute("data-status") == status:
                return
            self.page.wait_for_timeout(_PAUSE_MS)
            self.page.goto("/documents")
        expect(row).to_have_attribute("data-status", status)

    def search(self, question: str) -> Locator:
        """Search, and return the results."""
        self.page.goto("/search")
        box = self.page.get_by_test_id("search-input")
        box.fill(question)
        box.press("Enter")
        results = self.page.get_by_test_id("search-result")
        expect(results.or_(self.page.get_by_test_id("no-results")).first).to_be_visible()
        return results

    def delete(self, title: str) -> None:
        """Click delete in the row and confirm."""
        self.page.goto("/documents")
        self.row(title).get_by_test_id("delete-document").click()
        expect(self.page.get_by_test_id("confirm-dialog")).to_be_visible()
        self.page.get_by_test_id("confirm-delete").click()
        expect(self.row(title)).to_have_count(0)
