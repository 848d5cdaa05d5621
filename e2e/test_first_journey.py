"""A new user's journey: sign in, upload, wait, search in both languages, delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from e2e.conftest import PASSWORD, OpenPortal
from e2e.pages.portal import PortalPages
from tests.factories import files

pytestmark = pytest.mark.e2e

CHINESE = [
    "珊瑚礁保护条例",
    "第一条 潜水员不得触摸珊瑚。违者罚款五百元，并在三年内不得再次下水。",
    "第二条 船只必须停泊在指定的浮标处，禁止抛锚。",
]
ENGLISH = """# Lighthouse handbook

## Lamp

The lamp must be lit twenty minutes before sunset and cleaned every morning with vinegar.

## Visitors

Groups of more than six people need a permit from the harbour master.
"""


@pytest.mark.parametrize("javascript", [True, False], ids=["js", "no-js"])
@pytest.mark.parametrize("language", ["zh-CN", "en"])
def test_newcomer_uploads_searches_and_deletes(
    open_portal: OpenPortal, tmp_path: Path, language: str, javascript: bool
) -> None:
    mark = f"{language}-{'js' if javascript else 'nojs'}"
    pdf = files.write_pdf(tmp_path / f"珊瑚礁 {mark}.pdf", [[*CHINESE, f"编号 {mark}"]])
    markdown = tmp_path / f"lighthouse {mark}.md"
    markdown.write_text(ENGLISH + f"\nCopy {mark}.\n", encoding="utf-8")

    portal = open_portal(language, javascript=javascript)
    portal.sign_in("admin", PASSWORD)
    portal.upload(pdf, markdown)
    portal.wait_until_ready([pdf.stem, markdown.stem])

    for question, title in (
        ("触摸珊瑚要罚多少钱？", "珊瑚礁"),
        ("What is the fine for touching coral?", "珊瑚礁"),
        ("When is the lamp lit?", "lighthouse"),
        ("灯什么时候点亮？", "lighthouse"),
    ):
        best = portal.search(question).first
        expect(best).to_contain_text(title)
        assert best.get_attribute("data-source") in {"vector", "keyword", "hybrid"}
        assert 0 <= float(best.get_attribute("data-confidence") or "-1") <= 1

    results = portal.search("五百元")
    mine = results.filter(has_text=pdf.stem)
    expect(mine.first.locator("mark").first).to_be_visible()
    mine.first.get_by_role("link").first.click()
    expect(portal.page.get_by_role("heading", level=1)).to_contain_text(pdf.stem)
    expect(portal.page.locator(".page-layer rect").first).to_be_in_viewport()

    portal.delete(pdf.stem)
    expect(portal.search("触摸珊瑚").filter(has_text=pdf.stem)).to_have_count(0)
    assert portal.console_errors == []


def _with_document(open_portal: OpenPortal, path: Path, text: str) -> PortalPages:
    """Sign in, upload a text, and wait until it is ready."""
    path.write_text(text, encoding="utf-8")
    portal = open_portal()
    portal.sign_in("admin", PASSWORD)
    portal.upload(path)
    portal.wait_until_ready([path.stem])
    return portal


def test_undo_restores_a_deleted_document(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = _with_document(open_portal, tmp_path / "undo me.txt", "A text about undoing things.")
    portal.delete("undo me")
    portal.page.get_by_test_id("undo-delete").click()
    expect(portal.row("undo me")).to_be_visible()


def test_second_click_does_not_delete_again(open_portal: OpenPortal, tmp_path: Path) -> None:
    portal = _with_document(
        open_portal, tmp_path / "clicked twice.txt", "A text about clicking twice."
    )
    sent: list[str] = []
    portal.page.on("request", lambda request: sent.append(request.method))
    portal.row("clicked twice").get_by_test_id("delete-document").click()
    portal.page.get_by_test_id("confirm-delete").dblclick()
    expect(portal.row("clicked twice")).to_have_count(0)
    portal.page.wait_for_load_state("networkidle")
    assert sent.count("POST") == 1
    assert portal.console_errors == []


def test_unusable_files_say_why_and_the_good_one_is_taken(
    open_portal: OpenPortal, tmp_path: Path
) -> None:
    good = tmp_path / "good one.txt"
    good.write_text("A good text.", encoding="utf-8")
    bad = files.png_image(tmp_path / "picture.pdf")
    empty = files.empty_file(tmp_path / "nothing.txt")
    portal = open_portal("zh-CN")
    portal.sign_in("admin", PASSWORD)
    portal.upload(good, bad, empty)
    portal.wait_until_ready(["good one"])
    failed = portal.page.get_by_test_id("upload-item").filter(
        has=portal.page.get_by_test_id("upload-error")
    )
    expect(failed).to_have_count(2)
    expect(failed.filter(has_text="picture.pdf")).to_contain_text("PNG")
    expect(failed.filter(has_text="nothing.txt")).to_be_visible()
    expect(portal.row("picture")).to_have_count(0)


@pytest.mark.parametrize(("language", "scheme"), [("zh-CN", "dark"), ("en", "light")])
def test_sign_in_page_is_accessible(
    open_portal: OpenPortal, check_page: Callable[[Page], None], language: str, scheme: str
) -> None:
    page = open_portal(language, color_scheme=scheme, viewport={"width": 360, "height": 800}).page
    page.goto("/login")
    check_page(page)
