"""The search page explains why a result is listed and why a document is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import PortalPages
from e2e.pages.search import SearchPage

pytestmark = pytest.mark.e2e

ORCHARD = (
    "# Orchard rules\n\nThe quince trees are pruned in February, before the sap rises, by hand."
)
GARDEN = "# 花园规定\n\n玫瑰每年三月修剪一次，由园丁负责，剪下的枝条送去堆肥。"


def library_of(portal: PortalPages, folder: Path, mark: str) -> tuple[str, str, str]:
    """Upload a document, a copy and one about another subject; return their titles."""
    portal.sign_in("admin", PASSWORD)
    paths = [folder / f"{name} {mark}.md" for name in ("orchard", "orchard copy", "花园")]
    # A unique word separates repeated runs on the same portal.
    for path, text in zip(paths, (ORCHARD, ORCHARD + "\n", GARDEN), strict=True):
        path.write_text(f"{text}\n\n{mark}", encoding="utf-8")
    portal.upload(*paths)
    titles = tuple(path.stem for path in paths)
    portal.wait_until_ready(titles)
    return titles[0], titles[1], titles[2]


@pytest.mark.parametrize("javascript", [True, False], ids=["js", "no-js"])
def test_results_and_missing_documents_are_explained(
    open_portal: OpenPortal, tmp_path: Path, javascript: bool
) -> None:
    mark = f"explained{'js' if javascript else 'plain'}"
    portal = open_portal("en", javascript=javascript)
    orchard, copy, garden = library_of(portal, tmp_path, mark)
    search = SearchPage(portal.page).ask(f"When are the quince trees pruned {mark}?")

    standing = search.results.filter(has=portal.page.get_by_test_id("duplicates")).first
    expect(standing).to_contain_text("near-identical passage")
    shown = orchard if search.result(orchard).count() else copy
    why = search.explain(shown)
    expect(why.get_by_test_id("why-vector")).to_contain_text("rank")
    expect(why.get_by_test_id("why-text")).to_contain_text("rank")
    expect(why.get_by_test_id("matched-words")).to_contain_text("quince")
    expect(search.open_explanation()).to_contain_text("Embedding model")

    hidden = copy if shown == orchard else orchard
    expect(search.ask_why_not(hidden)).to_have_attribute("data-reason", "duplicate_of")
    search.ask(f"pruned title:{mark}")
    expect(search.ask_why_not(garden)).to_have_attribute("data-reason", "in_results")
    search.ask(f"quince -{mark}")
    expect(search.ask_why_not(garden)).to_have_attribute("data-reason", "excluded_by_filter")
    portal.delete(garden)
    search.ask(f"quince {mark}")
    answer = search.ask_why_not(garden)
    expect(answer).to_have_attribute("data-reason", "in_trash")
    expect(answer.get_by_role("link")).to_have_attribute("href", "/trash")
    assert portal.console_errors == []


@pytest.mark.parametrize(("language", "scheme"), [("zh-CN", "dark"), ("en", "light")])
def test_explanations_and_settings_are_accessible_and_fit_a_phone(
    open_portal: OpenPortal,
    check_page: Callable[[Page], None],
    tmp_path: Path,
    language: str,
    scheme: str,
) -> None:
    mark = f"axe{language[:2]}{scheme}"
    portal = open_portal(language, color_scheme=scheme, viewport={"width": 360, "height": 800})
    orchard, _, garden = library_of(portal, tmp_path, mark)
    page = portal.page
    search = SearchPage(page).ask(f"玫瑰什么时候修剪？{mark}")
    search.explain(garden)
    search.open_explanation()
    page.get_by_test_id("search-filters").locator("summary").click()
    search.ask_why_not(orchard)
    check_page(page)
    page.goto("/admin/search")
    page.get_by_test_id("search-settings-form").evaluate("form => { form.noValidate = true }")
    page.locator("[name=top_n]").fill("500")
    page.locator("[name=top_n]").press("Enter")
    expect(page.get_by_test_id("field-error")).to_be_visible()
    check_page(page)


def test_search_while_typing_keyboard_and_back(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = open_portal("en")
    library_of(portal, tmp_path, "typed")
    page = portal.page
    page.goto("/search")
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("quince trees pruned typed", delay=10)
    first = SearchPage(page).results.first
    expect(first).to_contain_text("orchard")
    expect(page).to_have_title("quince trees pruned typed · Search · Knowledge portal")
    expect(page).to_have_url(re.compile(r"typed$"))
    entries = page.evaluate("history.length")
    page.keyboard.type("?")
    expect(page).to_have_url(re.compile(r"typed(%3F|\?)$"))
    assert page.evaluate("history.length") == entries
    page.keyboard.press("ArrowDown")
    expect(first.get_by_role("link").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_test_id("search-input")).to_be_focused()

    page.set_viewport_size({"width": 390, "height": 420})
    page.goto("/search?q=quince+typed&n=1")
    few = SearchPage(page).results.count()
    page.get_by_test_id("show-more").click()
    expect(page).to_have_url(re.compile("n=11"))
    expect(SearchPage(page).results).not_to_have_count(few)
    page.wait_for_load_state()
    rows = SearchPage(page).results.count()
    page.keyboard.press("/")
    page.evaluate("scrollTo(0, 150)")
    SearchPage(page).results.first.get_by_role("link").first.evaluate("link => link.click()")
    expect(page).to_have_url(re.compile("/documents/"))
    page.go_back()
    expect(SearchPage(page).results).to_have_count(rows)
    page.wait_for_function("Math.abs(scrollY - 150) < 40")
    assert portal.console_errors == []
