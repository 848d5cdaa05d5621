"""Folders and many documents at once: by mouse, by keyboard alone, and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, Route, expect

from e2e.light_portal import LightPortal, library, light_portal
from portal.container import build_services
from portal.domain.documents import DocumentFilter, Visibility
from portal.domain.documents.bulk import BulkAction, BulkTarget
from portal.services.documents import bulk, folders
from portal.services.people import accounts
from tests.conftest import Portal

pytestmark = pytest.mark.e2e

# More than are on one page of the list.
SHELF = 55
TABS = 60


@pytest.fixture(scope="module")
def shelves(browser: Browser) -> Iterator[LightPortal]:
    """Yield a portal with the folders Shelf, with 55 documents, and Contracts / 2026, with one
    document of eve's."""
    texts = {f"item {number:02}.txt": f"Item {number}." for number in range(SHELF)}
    with library(texts) as made:
        services = build_services(made.settings())
        eve = Portal(services, accounts.find_user(services, "admin")).user("eve")
        admin = accounts.find_user(services, "admin")
        shelf = folders.create_folder(services, admin, name="Shelf", description="What is kept.")
        everything = BulkTarget(None, DocumentFilter())
        bulk.apply(services, admin, everything, BulkAction.MOVE, shelf)
        contracts = folders.create_folder(services, admin, name="Contracts")
        year = folders.create_folder(services, admin, name="2026", parent_id=contracts)
        hidden = Visibility.PRIVATE
        folders.create_folder(services, admin, name="Severance", visibility=hidden)
        Portal(services, admin).add("An offer.", name="offer.txt", visibility=hidden)
        other = Portal(services, admin).add("A bill.", name="bill.txt", owner=eve)
        bulk.apply(services, admin, BulkTarget((other.id,)), BulkAction.MOVE, year)
        services.database.dispose()
        with light_portal(made, browser) as portal:
            yield portal


@pytest.fixture
def portal(shelves: LightPortal) -> Iterator[LightPortal]:
    yield shelves
    shelves.close_windows()
    assert shelves.refused == []


def open_folder(page: Page, *names: str) -> None:
    page.goto("/documents")
    for name in names:
        page.get_by_test_id("folder-link").filter(has_text=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        # A filter or file chosen before the scripts have run is lost.
        page.wait_for_load_state()


def tab_to(wanted: Locator) -> None:
    """Press Tab until an element has the focus. Fail if it never gets there."""
    for _ in range(TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        wanted.page.keyboard.press("Tab")
    expect(wanted).to_be_focused()


def rows_of(page: Page) -> Locator:
    return page.get_by_test_id("document-row")


def test_folder_is_made_filled_and_removed_by_keyboard_alone(
    portal: LightPortal, tmp_path: Path
) -> None:
    page = portal.open_window().page
    keys = page.keyboard
    page.goto("/documents")
    tab_to(page.get_by_test_id("new-folder"))
    keys.press("Enter")
    expect(page.get_by_label("Folder name")).to_be_focused()
    keys.type("Handbook")
    keys.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Handbook")
    expect(page.locator("#document-filters")).to_be_hidden()
    page.wait_for_load_state()
    # Files uploaded here go into this folder. Listen for the file chooser well before pressing the
    # key: one that opens before the browser knows of the listener is missed.
    path = tmp_path / "leave.txt"
    path.write_text("Thirty days.", encoding="utf-8")
    page.on("filechooser", lambda chooser: chooser.set_files(path))
    tab_to(page.get_by_test_id("upload-button"))
    keys.press("Enter")
    row = rows_of(page)
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Handbook")
    expect(page.locator("#document-filters")).to_be_visible()
    tab_to(page.get_by_test_id("select-document"))
    keys.press("Space")
    expect(page.get_by_text("1 selected")).to_be_visible()
    keys.press("Escape")
    expect(page.get_by_test_id("bulk-move")).to_be_hidden()
    keys.press("Space")
    page.keyboard.press("Shift+Tab")
    tab_to(page.get_by_test_id("bulk-move"))
    keys.press("Enter")
    choice = page.get_by_label("Folder", exact=True)
    expect(choice).to_be_focused()
    # No folder is preselected, so a hasty Enter moves nothing.
    expect(choice).to_have_value("")
    keys.type("Contracts")
    tab_to(page.get_by_test_id("bulk-apply"))
    keys.press("Enter")
    expect(page.get_by_text("1 document was moved.")).to_be_visible()
    expect(row).to_have_count(0)
    tab_to(page.get_by_test_id("undo-delete"))
    keys.press("Enter")
    expect(row).to_have_count(1)
    page.goto(page.url)
    tab_to(page.get_by_test_id("delete-folder"))
    keys.press("Enter")
    expect(page.get_by_test_id("confirm-folder-dialog")).to_be_visible()
    tab_to(page.get_by_label("Keep them, in no folder"))
    keys.press("ArrowDown")
    tab_to(page.get_by_test_id("confirm-folder-delete"))
    keys.press("Enter")
    expect(page.get_by_text("1 document is in the trash.")).to_be_visible()
    expect(page.get_by_test_id("folder-link").filter(has_text="Handbook")).to_have_count(0)


def test_folder_is_switched_and_handed_over_by_keyboard_alone(portal: LightPortal) -> None:
    page = portal.open_window().page
    keys = page.keyboard
    open_folder(page, "Contracts")
    switch = page.get_by_test_id("folder-switch").get_by_role("switch")
    for state in ("false", "true"):
        tab_to(switch)
        keys.press("Space")
        expect(switch).to_have_attribute("aria-checked", state)
        # The page was reloaded; the focus is where it was, and the page has not scrolled.
        expect(switch).to_be_focused()
        assert page.evaluate("scrollY") == 0
    tab_to(page.get_by_test_id("folder-members"))
    keys.press("Enter")
    tab_to(page.get_by_label("Username"))
    keys.type("eve")
    keys.press("Enter")
    member = page.get_by_test_id("member-row").filter(has_text="eve")
    expect(member).to_contain_text("can view")
    tab_to(member.get_by_role("button", name="Remove"))
    keys.press("Enter")
    expect(member).to_have_count(0)


def test_uploaded_folder_keeps_its_tree(portal: LightPortal, tmp_path: Path) -> None:
    page = portal.open_window().page
    for name in ("travel.txt", "Pay & <bands>/年假.txt", "Pay & <bands>/bonus.txt"):
        path = tmp_path / "Policies" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"About {name}.", encoding="utf-8")
    open_folder(page, "Contracts", "2026")
    page.get_by_test_id("upload-for").select_option("private")
    page.get_by_test_id("upload-folder").set_input_files(tmp_path / "Policies")
    expect(rows_of(page)).to_have_count(4)
    expect(page.get_by_test_id("folder-link").filter(has_text="Policies")).to_be_visible()
    # The new folders can be chosen as a target, and the choice is kept.
    into = page.get_by_test_id("upload-into")
    expect(into.locator("option", has_text="Policies")).to_have_count(1)
    expect(into.locator("option:checked")).to_have_text(re.compile("2026"))
    open_folder(page, "Contracts", "2026", "Policies", "Pay & <bands>")
    expect(rows_of(page)).to_have_count(2)
    expect(page.get_by_test_id("seen-by")).to_have_text(["Private"] * 2)
    path_links = page.get_by_role("navigation", name="Path").get_by_role("link")
    expect(path_links).to_have_text(["All documents", "Contracts", "2026", "Policies"])
    path_links.last.click()
    expect(rows_of(page)).to_have_count(3)
    # Folders of a private upload are private, and so are their names.
    other = portal.open_window(user="eve").page
    open_folder(other, "Contracts", "2026")
    expect(other.get_by_test_id("folder-link").filter(has_text="Policies")).to_have_count(0)
    expect(other.get_by_text("Severance")).to_have_count(0)
    expect(rows_of(other)).to_have_count(1)


def test_filters_are_in_the_address_and_back_returns_to_the_same_rows(
    portal: LightPortal,
) -> None:
    page = portal.open_window().page
    open_folder(page, "Shelf")
    page.get_by_label("Sort by").select_option("title")
    expect(rows_of(page).first).to_contain_text("item 00")
    page.get_by_label("Title contains").fill("item")
    expect(page).to_have_url(re.compile(r"q=item&folder=[-0-9a-f]+&sort=title$"))
    page.get_by_role("link", name="Show more").click()
    expect(rows_of(page)).to_have_count(SHELF)
    place = page.url
    last = rows_of(page).last
    last.scroll_into_view_if_needed()
    last.get_by_role("link", name=f"item {SHELF - 1}", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"item {SHELF - 1}")
    page.go_back()
    expect(page).to_have_url(place)
    expect(rows_of(page)).to_have_count(SHELF)
    expect(last).to_be_in_viewport()
    # The address alone gives the same list, and the page shows its filters.
    again = portal.open_window().page
    again.goto(place.partition("&shown")[0])
    expect(rows_of(again).first).to_contain_text("item 00")
    expect(again.get_by_label("Title contains")).to_have_value("item")
    again.get_by_label("Status").select_option("failed")
    expect(again.get_by_text("No documents match these filters")).to_be_visible()
    expect(again.get_by_test_id("select-all")).to_be_hidden()
    again.go_back()
    expect(again.get_by_label("Status")).to_have_value("")
    expect(rows_of(again)).to_have_count(50)


def test_name_of_a_new_folder_survives_a_change_of_language(portal: LightPortal) -> None:
    page = portal.open_window("en").page
    page.goto("/folders/new")
    page.get_by_label("Folder name").fill("Leases")
    page.get_by_test_id("language-switch").click()
    expect(page.get_by_label("文件夹名称")).to_have_value("Leases")
    page.get_by_test_id("language-switch").click()
    expect(page.get_by_label("Folder name")).to_have_value("Leases")
    page.reload()
    expect(page.get_by_label("Folder name")).to_have_value("")


def test_account_name_is_not_cut_off_in_the_header(portal: LightPortal) -> None:
    page = portal.open_window().page
    page.goto("/documents")
    label = page.locator(".menu-label")
    expect(label).to_have_text("admin")
    assert label.evaluate("it => it.scrollHeight <= it.clientHeight")


def test_rare_filters_open_by_keyboard_and_apply_at_once(portal: LightPortal) -> None:
    page = portal.open_window().page
    page.goto("/documents?q=item")
    tab_to(page.get_by_role("button", name="More filters"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Visibility")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/documents\?q=item$"))
    page.get_by_label("Owner").select_option("eve")
    expect(page.get_by_text("No documents match these filters")).to_be_visible()
    page.get_by_label("Owner").select_option("admin")
    expect(rows_of(page)).to_have_count(50)
    expect(page).to_have_url(re.compile(r"q=item&owner=[-0-9a-f]+$"))
    plain = portal.open_window(java_script_enabled=False).page
    plain.goto("/documents")
    plain.get_by_label("Title contains").fill("item 1")
    plain.get_by_role("button", name="More filters").click()
    plain.get_by_label("Owner").select_option("admin")
    plain.get_by_role("button", name="Filter", exact=True).click()
    expect(rows_of(plain)).to_have_count(10)
    expect(plain.get_by_label("Owner")).to_be_visible()


@pytest.mark.parametrize("has_scripts", [True, False])
def test_phones_show_all_filters_after_more_filters(portal: LightPortal, has_scripts: bool) -> None:
    size = {"width": 390, "height": 844}
    page = portal.open_window(viewport=size, java_script_enabled=has_scripts).page
    page.goto("/documents")
    expect(page.get_by_label("Status")).to_be_hidden()
    page.get_by_role("button", name="More filters").click()
    expect(page.get_by_label("Visibility")).to_be_visible()
    expect(page.get_by_label("Status")).to_be_visible()
    expect(page.get_by_label("Type", exact=True)).to_be_visible()


def test_columns_of_the_list_align_in_rows_without_delete(portal: LightPortal) -> None:
    page = portal.open_window(user="eve").page
    page.goto("/documents")
    expect(page.get_by_test_id("delete-document")).to_have_count(1)
    edges = "found => [...new Set(found.map(it => Math.round(it.getBoundingClientRect().left)))]"
    for name in ("document-status", "ask-about-row"):
        assert len(rows_of(page).get_by_test_id(name).evaluate_all(edges)) == 1, name


def test_rows_are_selected_by_click_shift_click_and_select_all(portal: LightPortal) -> None:
    page = portal.open_window().page
    open_folder(page, "Shelf")
    page.get_by_label("Sort by").select_option("title")
    expect(page).to_have_url(re.compile("sort=title"))
    boxes = page.get_by_test_id("select-document")
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    boxes.nth(2).click()
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_test_id("bulk-visibility").click()
    page.get_by_label("Private (owner and administrators)").check()
    page.get_by_test_id("bulk-apply").click()
    expect(page.get_by_text("3 documents changed.")).to_be_visible()
    seen_by = page.get_by_test_id("seen-by")
    private = [n in {1, 3, 4} for n in range(6)]
    for number, is_private in enumerate(private):
        expect(seen_by.nth(number)).to_have_text("Private" if is_private else "Everyone")
    page.get_by_test_id("undo-delete").click()
    expect(page.get_by_text("The change to 3 documents was undone.")).to_be_visible()
    expect(seen_by.filter(has_text="Private")).to_have_count(0)
    # More documents match than are on the page.
    page.get_by_test_id("select-all").check()
    page.get_by_test_id("bulk-add_tag").click()
    expect(page.get_by_text(f"{SHELF} documents are selected.")).to_be_visible()
    page.get_by_test_id("bulk-dialog").get_by_label("Tag").fill("archive 2026")
    page.get_by_test_id("bulk-apply").click()
    expect(page.get_by_text(f"{SHELF} documents changed.")).to_be_visible()
    rows_of(page).first.get_by_role("link", name="archive 2026").click()
    expect(page.locator("#document-count")).to_contain_text(f"{SHELF} documents")
    # Unticking a row limits the selection to the rows that are still ticked.
    page.get_by_test_id("select-all").check()
    boxes.first.click()
    expect(page.get_by_test_id("select-all")).not_to_be_checked()
    expect(page.get_by_text("49 selected")).to_be_visible()


def test_window_that_gets_the_focus_shows_changes(portal: LightPortal) -> None:
    page, other = portal.open_window().page, portal.open_window(user="eve").page
    place = "/documents?q=item 2&sort=title"
    page.goto(place)
    other.goto(place)
    expect(rows_of(other)).to_have_count(10)
    kept = rows_of(other).first
    kept.evaluate("row => row.dataset.kept = 'yes'")
    # Here Chromium treats every window as the one in front, so send the event by hand.
    comes_to_the_front = "window.dispatchEvent(new Event('focus'))"
    with other.expect_response(lambda response: "x-refresh" in response.request.headers):
        other.evaluate(comes_to_the_front)
    page.get_by_role("checkbox", name="item 29").check()
    page.get_by_test_id("bulk-delete").click()
    page.get_by_test_id("bulk-apply").click()
    expect(rows_of(page)).to_have_count(9)
    # Unchanged rows stayed in place.
    expect(kept).to_have_attribute("data-kept", "yes")
    tick = other.get_by_role("checkbox", name="item 20")
    tick.check()
    other.evaluate(comes_to_the_front)
    expect(tick).to_be_checked()
    tick.uncheck()
    other.evaluate(comes_to_the_front)
    expect(rows_of(other)).to_have_count(9)
    expect(other).to_have_url(re.compile(r"q=item(%20|\+| )2&sort=title$"))
    page.get_by_test_id("undo-delete").click()
    expect(rows_of(page)).to_have_count(10)


def test_outdated_refresh_does_not_bring_back_a_deleted_row(portal: LightPortal) -> None:
    page = portal.open_window().page
    place = "/documents?q=item 3&sort=title"
    page.goto(place)
    count = rows_of(page).count()
    headers = {"HX-Request": "true", "HX-Target": "document-results", "X-Refresh": "true"}
    before = page.request.get(page.url, headers=headers).text()
    held: list[Route] = []
    page.route(
        "**/documents?*",
        lambda route: (
            held.append(route) if "x-refresh" in route.request.headers else route.continue_()
        ),
    )
    page.evaluate(
        "document.addEventListener('htmx:afterRequest', ({ detail }) => {"
        " if (detail.requestConfig.headers['X-Refresh']) document.body.dataset.refreshed = 'yes' })"
    )
    with page.expect_request(lambda request: "x-refresh" in request.headers):
        page.evaluate("window.dispatchEvent(new Event('focus'))")
    rows_of(page).first.get_by_test_id("delete-document").click()
    page.get_by_test_id("confirm-delete").click()
    expect(rows_of(page)).to_have_count(count - 1)
    with suppress(Error):  # The page aborted the request.
        held[0].fulfill(body=before, content_type="text/html")
    expect(page.locator("body[data-refreshed]")).to_be_attached()
    expect(rows_of(page)).to_have_count(count - 1)
    page.get_by_test_id("undo-delete").click()
    expect(rows_of(page)).to_have_count(count)


def test_second_click_sends_nothing_and_progress_is_shown(portal: LightPortal) -> None:
    page = portal.open_window().page
    open_folder(page, "Shelf")
    page.get_by_test_id("select-document").first.check()
    page.get_by_test_id("bulk-visibility").click()
    page.get_by_label("Private (owner and administrators)").check()
    # Count the submissions and keep the page, as while the server works.
    page.evaluate(
        """() => {
          window.sentCount = 0;
          window.addEventListener("submit", (event) => {
            window.sentCount += event.defaultPrevented ? 0 : 1;
            event.preventDefault();
          });
        }"""
    )
    change = page.get_by_test_id("bulk-apply")
    change.click()
    expect(page.get_by_role("progressbar", name="In progress")).to_be_visible()
    change.click()
    assert page.evaluate("window.sentCount") == 1


def test_documents_can_be_moved_before_their_new_access_is_shown(portal: LightPortal) -> None:
    page = portal.open_window().page
    page.goto("/documents?q=item 07")
    page.get_by_test_id("select-document").check()
    page.get_by_test_id("bulk-move").click()
    choice = page.get_by_label("Folder", exact=True)
    expect(choice).to_be_focused()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/documents/bulk/ask", hold)
    with page.expect_request("**/documents/bulk/ask"):
        choice.select_option("Contracts")
    page.get_by_test_id("bulk-apply").click()
    expect(page.get_by_text("1 document was moved.")).to_be_visible()
    page.get_by_test_id("undo-delete").click()
    expect(rows_of(page)).to_contain_text("Shelf")
    for route in held:
        with suppress(Error):  # The page that sent it is gone.
            route.abort()


def test_refused_documents_are_listed_with_the_reason(portal: LightPortal) -> None:
    page = portal.open_window(user="eve").page
    read_again = page.get_by_role("button", name="Read again")
    page.goto("/documents?q=0&sort=title")
    page.get_by_test_id("select-all").check()
    page.get_by_test_id("bulk-delete").click()
    dialog = page.get_by_test_id("bulk-dialog")
    expect(dialog).to_contain_text("They belong to other users, so you cannot change them.")
    expect(dialog.get_by_test_id("bulk-apply")).to_have_count(0)
    dialog.get_by_role("link", name="Cancel").click()
    read_again.click()
    # Too many to name in a notification.
    skipped = page.get_by_test_id("skipped-documents").get_by_role("listitem")
    expect(skipped.first).to_contain_text("item 00")
    expect(skipped.first).to_contain_text("Belongs to another user.")
    page.goto("/documents?q=item 01&sort=title")
    page.get_by_test_id("select-all").check()
    read_again.click()
    note = page.get_by_test_id("notification")
    expect(note).to_contain_text(re.compile("skipped because .* belongs? to .*: item 01"))
    expect(note).to_have_attribute("data-kind", "error")


def test_restoring_many_documents_can_be_undone_in_the_trash(portal: LightPortal) -> None:
    page = portal.open_window().page
    page.goto("/documents?q=item 5")
    page.get_by_test_id("select-all").check()
    page.get_by_test_id("bulk-delete").click()
    page.get_by_test_id("bulk-apply").click()
    expect(page.get_by_text("5 documents are in the trash.")).to_be_visible()
    page.goto("/trash")
    rows = page.get_by_test_id("trash-row")
    # On a phone the dates stand below the title.
    page.set_viewport_size({"width": 390, "height": 844})
    left = "element => element.getBoundingClientRect().left"
    first, title = rows.first, rows.first.locator(".document-title")
    assert first.locator(".trash-dates time").first.evaluate(left) > title.evaluate(left)
    assert first.locator(".trash-dates > span").first.evaluate(left) == title.evaluate(left)
    before = rows.count()
    for box in page.get_by_role("checkbox", name=re.compile("item 5")).all():
        box.check()
    page.get_by_test_id("bulk-restore").click()
    expect(rows).to_have_count(before - 5)
    page.get_by_test_id("undo-delete").click()
    expect(rows).to_have_count(before)
    for box in page.get_by_role("checkbox", name=re.compile("item 5")).all():
        box.check()
    page.get_by_test_id("bulk-restore").click()
    expect(rows).to_have_count(before - 5)


def test_folders_and_bulk_changes_work_without_javascript(
    portal: LightPortal, tmp_path: Path
) -> None:
    page = portal.open_window(java_script_enabled=False).page
    page.goto("/documents")
    page.get_by_test_id("new-folder").click()
    page.get_by_label("Folder name").fill("By hand")
    page.get_by_label("Parent folder").select_option(label="Contracts")
    page.get_by_test_id("save-folder").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    path = tmp_path / "plain.txt"
    path.write_text("Plain words.", encoding="utf-8")
    page.get_by_test_id("upload-input").set_input_files(path)
    page.get_by_test_id("upload-button").click()
    expect(rows_of(page)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    page.get_by_test_id("select-document").check()
    page.get_by_test_id("bulk-add_tag").click()
    expect(page.get_by_text("1 document is selected.")).to_be_visible()
    page.get_by_test_id("bulk-dialog").get_by_label("Tag").fill("paper")
    page.get_by_test_id("bulk-apply").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    expect(rows_of(page).get_by_role("link", name="paper")).to_be_visible()
    page.get_by_test_id("undo-delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("By hand")
    expect(rows_of(page)).to_have_count(1)
    expect(rows_of(page).get_by_role("link", name="paper")).to_have_count(0)
    page.get_by_label("Sort by").select_option("title")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page).to_have_url(re.compile("sort=title"))
    page.get_by_test_id("delete-folder").click()
    page.get_by_test_id("confirm-folder-delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Contracts")


def test_tree_is_a_sheet_on_phones(portal: LightPortal) -> None:
    page = portal.open_window(viewport={"width": 390, "height": 800}).page
    open_folder_link = page.get_by_role("link", name="Folders", exact=True)
    page.goto("/documents")
    tree = page.get_by_role("navigation", name="Folders")
    expect(tree).to_be_hidden()
    open_folder_link.click()
    expect(tree).to_be_visible()
    page.keyboard.press("Escape")
    expect(tree).to_be_hidden()
    open_folder_link.click()
    tree.get_by_role("link", name="Shelf").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Shelf")
    expect(tree).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(
    ("language", "scheme", "width"), [("en", "light", 1440), ("zh-CN", "dark", 360)]
)
def test_pages_with_folders_are_accessible(
    portal: LightPortal,
    assert_accessible: Callable[..., None],
    language: str,
    scheme: str,
    width: int,
) -> None:
    size = {"width": width, "height": 900}
    page = portal.open_window(language, color_scheme=scheme, viewport=size).page
    # Show few rows: they look alike, and axe checks each of them.
    page.goto("/documents?q=bill&sort=title#folder-tree")
    assert_accessible(page)
    for name in ("Contracts", "2026"):
        page.goto(page.url.partition("#")[0] + "#folder-tree")
        page.get_by_test_id("folder-link").filter(has_text=name).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_test_id("delete-folder").click()
    expect(page.get_by_test_id("confirm-folder-dialog")).to_be_visible()
    assert_accessible(page, "dialog[open]")
    page.keyboard.press("Escape")
    page.get_by_test_id("select-document").first.check()
    assert_accessible(page)
    for action in ("move", "add_tag", "visibility"):
        page.get_by_test_id(f"bulk-{action}").click()
        expect(page.get_by_test_id("bulk-dialog")).to_be_visible()
        assert_accessible(page, "dialog[open]")
        page.keyboard.press("Escape")
