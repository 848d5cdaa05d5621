"""The clicks that the main jobs with folders take, as docs/documents.md states them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.light_portal import LightPortal, library, light_portal
from portal.container import build_services
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.domain.documents.folders import FolderVisibility
from portal.services.documents import bulk, folders
from portal.services.documents import library as documents
from portal.services.people import accounts
from tests.conftest import Portal

pytestmark = pytest.mark.e2e

_PAGE = Path(__file__).parents[1] / "docs" / "documents.md"
# Counts pointer clicks across pages; clicks made by the keyboard or a script have no `detail`.
_COUNT = """
addEventListener("click", (event) => {
  if (!event.isTrusted || !event.detail) return;
  sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
}, true);
"""


@pytest.fixture(scope="module")
def portal(browser: Browser) -> Iterator[LightPortal]:
    """Yield a portal with one document in each of Contracts / 2026, Archive and Outdated / Older;
    the folder Hand-over is open to members only."""
    names = {"rent.txt": "2026", "minutes.txt": "Archive", "plan.txt": "Older"}
    with library({name: f"About {name}." for name in names}) as made:
        services = build_services(made.settings())
        admin = accounts.find_user(services, "admin")
        Portal(services, admin).user("eve")
        found: dict[str, object] = {}
        for name, parent in (
            ("Contracts", None), ("2026", "Contracts"), ("Archive", None), ("Outdated", None),
            ("Older", "Outdated"),
        ):  # fmt: skip
            above = found[parent] if parent else None
            found[name] = folders.create_folder(services, admin, name=name, parent_id=above)
        folders.create_folder(
            services, admin, name="Hand-over", visibility=FolderVisibility.MEMBERS
        )
        for document in documents.list_documents(services, admin).items:
            place = found[names[document.file_name]]
            bulk.apply(services, admin, BulkTarget((document.id,)), BulkAction.MOVE, place)
        services.database.dispose()
        with light_portal(made, browser) as running:
            yield running


@pytest.fixture
def page(portal: LightPortal) -> Iterator[Page]:
    opened = portal.open_window(init_script=_COUNT).page
    opened.goto("/")
    yield opened
    portal.close_windows()


def expect_clicks(page: Page, job: str) -> None:
    """Compare the clicks on this page with the first number in the row of the job."""
    row = re.search(rf"^\| {job} \| ([0-9]+)", _PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row, job
    assert page.evaluate("Number(sessionStorage.getItem('clicks'))") == int(row[1])


def open_folders(page: Page, *names: str) -> None:
    page.get_by_role("link", name="Documents", exact=True).click()
    for name in names:
        page.get_by_test_id("folder-link").filter(has_text=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_last_weeks_contract_is_found(page: Page) -> None:
    open_folders(page, "Contracts", "2026")
    page.get_by_test_id("document-row").get_by_role("link", name="rent").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("rent")
    expect_clicks(page, "find last week's contract")


def test_one_folder_is_asked(page: Page) -> None:
    open_folders(page, "Archive")
    page.get_by_test_id("ask-about").click()
    expect(page.get_by_test_id("chat-input")).to_be_focused()
    expect(page.get_by_text("Archive").first).to_be_visible()
    expect_clicks(page, "ask one folder")


def test_archive_stays_switched_off(page: Page) -> None:
    open_folders(page, "Archive")
    page.get_by_test_id("folder-switch").get_by_role("switch").click()
    expect(page.get_by_test_id("folder-off")).to_be_visible()
    expect_clicks(page, "switch an archive off for good")


def test_folder_is_handed_to_a_new_member(page: Page) -> None:
    open_folders(page, "Hand-over")
    page.get_by_test_id("folder-members").click()
    page.get_by_label("Username").click()
    page.keyboard.type("eve")
    page.get_by_role("button", name="Add user").click()
    expect(page.get_by_test_id("member-row")).to_contain_text("eve")
    expect_clicks(page, "hand a folder to a new member")


def test_outdated_tree_is_removed(page: Page) -> None:
    open_folders(page, "Outdated")
    page.get_by_test_id("delete-folder").click()
    page.get_by_label("to the trash").click()
    page.get_by_test_id("confirm-folder-delete").click()
    expect(page.get_by_text("1 document is in the trash.")).to_be_visible()
    expect_clicks(page, "remove an outdated tree")
