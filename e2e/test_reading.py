"""Words in their place: quotations on the pages of a PDF, results in a preview beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.chat import ChatPage
from e2e.pages.portal import PortalPages
from tests.factories import files
from tests.factories.servers.endpoint import wait_until

pytestmark = pytest.mark.e2e

RULE = "The keeper of the north beacon is paid 4711 euros for each year of service."
PAGES = [["Beacons of the coast", "Each beacon has a keeper."], ["Wages", RULE, "Paid in May."]]


def beacons(portal: PortalPages, folder: Path, mark: str) -> str:
    pdf = files.write_pdf(folder / f"beacons {mark}.pdf", [*PAGES, [f"Copy {mark}."]])
    note = folder / f"lamps {mark}.md"
    note.write_text(f"# Lamps\n\nThe lamp of a beacon burns oil {mark}.", encoding="utf-8")
    portal.sign_in("admin", PASSWORD)
    portal.upload(pdf, note)
    portal.wait_until_ready([pdf.stem, note.stem])
    return pdf.stem


def expect_covered(words_mark: Locator, words: Locator) -> None:
    """Wait until a mark covers some words: the page may scroll between two measurements."""
    wait_until(
        lambda: _covers(words_mark, words), within_s=20, complaint="the words are not marked"
    )


def _covers(mark: Locator, words: Locator) -> bool:
    one, other = mark.bounding_box(), words.bounding_box()
    return bool(
        one
        and other
        and abs(one["x"] - other["x"]) < 4
        and abs(one["width"] - other["width"]) < 0.1 * other["width"]
        and abs(one["y"] + one["height"] / 2 - other["y"] - other["height"] / 2) < other["height"]
    )


def test_a_quotation_is_marked_in_place_on_its_page(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    portal = open_portal("en")
    title = beacons(portal, tmp_path, "quoted")
    page = portal.page
    page.goto("/documents")
    portal.row(title).get_by_role("link", name=title, exact=True).click()
    page.wait_for_url("**/documents/*")
    page.get_by_test_id("ask-about").click()
    page.wait_for_url("**/chat*")
    chat = ChatPage(page)
    answer = chat.ask("How much is the keeper of the north beacon paid?")
    chat.open_sources(answer.get_by_test_id("citation-marker").first)
    quote = page.locator("#chat-side rect.quote").first
    expect(quote).to_be_in_viewport()
    words = page.locator("#chat-side .page-layer tspan", has_text="4711 euros").first
    expect_covered(quote, words)

    page.get_by_test_id("source-link").click()
    expect(page.locator("rect.quote").first).to_be_in_viewport()
    expect(page.get_by_test_id("page-number")).to_have_value("2")
    expect_covered(page.locator("rect.quote").first, page.locator("tspan", has_text="4711").first)
    page.get_by_test_id("cited-by").locator("summary").click()
    expect(page.get_by_test_id("cited-row").first).to_contain_text("4711 euros")
    assert portal.console_errors == []


def test_results_have_a_preview_beside_them(
    open_portal: OpenPortal, assert_accessible: Callable[[Page], None], tmp_path: Path
) -> None:
    portal = open_portal("en", viewport={"width": 1440, "height": 900})
    title = beacons(portal, tmp_path, "shown")
    page = portal.page
    page.goto("/search?q=keeper+of+the+north+beacon+lamp+oil+shown")
    preview = page.get_by_test_id("preview")
    expect(preview).to_be_visible()
    for fold in page.locator("[data-testid=weaker]:not([open]) > summary").all():
        fold.click()
    page.get_by_role("link", name="lamps shown", exact=True).first.focus()
    expect(preview).to_contain_text("burns oil")
    expect(preview.locator("mark").first).to_be_visible()
    assert_accessible(page)
    page.get_by_test_id("search-result").get_by_role("link", name=title).first.hover()
    expect(preview.locator(".page-layer rect.found").first).to_be_in_viewport()
    assert_accessible(page)

    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("link", name="lamps shown", exact=True).first.focus()
    page.get_by_role("link", name="lamps shown", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("lamps shown")
    assert not [address for address in seen if "/search/preview" in address]
    assert portal.console_errors == []


def test_failed_page_picture_is_retried_and_can_be_retried_by_hand(
    open_portal: OpenPortal, assert_accessible: Callable[[Page], None], tmp_path: Path
) -> None:
    portal = open_portal("en")
    title = beacons(portal, tmp_path, "busy")
    page = portal.page
    page.clock.install()
    left = 1

    def answer(route: Route) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            route.continue_()
        else:
            route.fulfill(status=503)

    page.route("**/pages/1/picture?*", answer)
    with page.expect_response("**/pages/1/picture?*"):
        portal.row(title).get_by_role("link", name=title, exact=True).click()
    drawn = page.locator(".page-sheet[data-number='1'] .page-picture")
    note = drawn.locator("xpath=following-sibling::*[1]")
    expect(note).to_be_hidden()
    page.clock.run_for(60_000)
    expect(drawn).not_to_have_js_property("naturalWidth", 0)

    left = 100
    page.reload()
    for _ in range(3):
        with page.expect_response("**/pages/1/picture?*"):
            page.clock.run_for(10_000)
    expect(note).to_contain_text("This page cannot be shown.")
    assert_accessible(page)
    left = 0
    note.get_by_role("button", name="Try again").click()
    expect(drawn).not_to_have_js_property("naturalWidth", 0)
    expect(note).to_be_hidden()
