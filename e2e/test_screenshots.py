"""Every page passes axe, fits the window and has no script errors; optionally with screenshots.

`./run test --screenshots` checks each language, theme and width, and saves the pictures with an
`index.html` in `screenshots/`. Without it, each page is checked in two combinations.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page

from e2e.light_portal import LightPortal, library, light_portal
from portal import create_app
from portal.container import build_services
from portal.domain.documents.bulk import BulkAction, BulkResult, BulkTarget, SkippedDocument
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.errors import Conflict, InvalidInput
from portal.http.cookies import SESSION, THEME
from portal.services.answers import conversations, sharing
from portal.services.documents import bulk, folders
from portal.services.documents import library as documents
from portal.services.documents.folders import members as folder_members
from portal.services.documents.sources import folder_sources, syncing
from portal.services.people import accounts, groups, invitations
from portal.web.i18n import LANGUAGES
from portal.web.layout import THEMES
from tests.conftest import Portal
from tests.factories import files
from tests.factories.answers import ask
from tests.factories.files import illustrated

pytestmark = pytest.mark.e2e

HANDBOOK = """# Team handbook

## Leave

| Years with us | Days of leave | Carried over |
| --- | --- | --- |
| Less than 2 | 25 | 5 |
| 2 to 5 | 27 | 5 |
| More than 5 | 30 | 8 |

Ask your manager two weeks before a holiday. Sick leave starts with a call before nine.

## Not reimbursed

- Laundry and the minibar
- Fees for tickets that you changed
"""
ZH = """# 差旅与报销制度

## 住宿标准

| 城市级别 | 普通员工（元/晚） | 经理（元/晚） |
| --- | --- | --- |
| 一线城市 | 450 | 600 |
| 省会城市 | 350 | 480 |

出差结束后 10 个工作日内提交报销单。财务每周三付款。
"""
WIDTHS = (1440, 360)
SCHEMES = tuple(theme for theme in THEMES if theme != "auto")
QUESTION = "How many days of leave after more than 5 years?"

# Not "networkidle", which waits for another half second on each page.
ALL_IS_HERE = """() => !document.querySelector(".htmx-request") &&
  [...document.images].every(({ complete, loading }) => complete || loading === "lazy")"""
# Returns the faults of a page, each with its places. Links within sentences may be less than 24
# pixels high, like the line they are in.
FAULTS = """async () => {
  const name = (element) => element.outerHTML.slice(0, 120);
  const targets =
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const isSmall = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return Math.min(width, height) < 23.5;
  };
  const hasLabel = (element) => [...(element.labels ?? [])].some((label) => !isSmall(label));
  const isInSentence = (element) =>
    getComputedStyle(element).display.startsWith("inline") &&
    element.closest("p, li")?.textContent.trim().length > element.textContent.trim().length + 3;
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !element.closest(".visually-hidden, .skip-link");
  const small = [...document.querySelectorAll(targets)]
    .filter((element) => isShown(element) && isSmall(element))
    .filter((element) => !hasLabel(element) && !isInSentence(element));
  const shifts = await new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => resolve(list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve([]), 50);
  });
  // What moves by less is not seen: a shift is "good" below 0.1.
  const moved = shifts.filter(({ value }) => value > 0.01).flatMap(({ sources }) => sources);
  const root = document.documentElement;
  const wide = () => root.scrollWidth > window.innerWidth ? [location.pathname] : [];
  const usual = wide();
  const spacing = new CSSStyleSheet();  // WCAG 1.4.12
  spacing.replaceSync(`* { line-height: 1.5 !important; letter-spacing: .12em !important;
    word-spacing: .16em !important } p { margin-bottom: 2em !important }`);
  document.adoptedStyleSheets = [spacing];
  const spaced = wide();
  document.adoptedStyleSheets = [];
  return {
    "is wider than the window": usual,
    "is wider than the window once its text is spaced": spaced,
    "has no heading of the first level": document.querySelector("h1") ? [] : [location.pathname],
    "is smaller than 24 pixels": small.map(name),
    "moved while the page was loaded": moved.map(({ node }) => name(node?.closest ? node : root)),
  };
}"""
# Endpoint, path values and the rest of the address of each page, by name.
PAGES: dict[str, tuple[str, dict[str, str], str]] = {
    "front door": ("home.show", {}, ""),
    "front door, suggested questions": ("home.show", {}, "?suggest=1"),
    "documents": ("documents.index", {}, ""),
    "documents of a folder": ("documents.index", {}, "?folder={folder}"),
    "documents that were not changed": ("bulk.show_report", {"report_id": "report"}, ""),
    "documents, none found": ("documents.index", {}, "?q=no+such+title"),
    "delete a document": ("documents.confirm_delete", {"document_id": "handbook"}, ""),
    "new folder": ("folders.show_new", {}, ""),
    "change a folder": ("folders.show_edit", {"folder_id": "folder"}, ""),
    "delete a folder": ("folders.confirm_delete", {"folder_id": "folder"}, ""),
    "members of a folder": ("folders.show_members", {"folder_id": "folder"}, ""),
    "source of a folder": ("folder_sources.show", {"folder_id": "folder"}, ""),
    "a document": ("reading.show", {"document_id": "handbook"}, ""),
    "a document, found in": ("reading.show", {"document_id": "travel"}, "?find=报销"),
    "a PDF": ("reading.show", {"document_id": "pdf"}, ""),
    "a PDF as text": ("reading.show", {"document_id": "pdf"}, "?view=text"),
    "a document with an image": ("reading.show", {"document_id": "illustrated"}, ""),
    "versions": ("revisions.show_all", {"document_id": "handbook"}, ""),
    "a version": ("revisions.show", {"document_id": "handbook", "number": "1"}, ""),
    "search": ("search.show", {}, ""),
    "search results": ("search.show", {}, "?q=days+of+leave"),
    "search, nothing found": ("search.show", {}, "?q=xyzzy"),
    "why not found": ("search.show_why_not", {}, "?q=leave&title=差旅"),
    "ask": ("chat.index", {}, ""),
    "a conversation": ("chat.show", {"conversation_id": "conversation"}, ""),
    "a source": ("chat.show", {"conversation_id": "conversation"}, "?source={citation}"),
    "switches": ("selection.show", {"conversation_id": "conversation"}, ""),
    "rename a conversation": ("chat.show_rename", {"conversation_id": "conversation"}, ""),
    "change a question": (
        "messages.edit",
        {"conversation_id": "conversation", "message_id": "question"},
        "",
    ),
    "how it was answered": (
        "messages.replay",
        {"conversation_id": "conversation", "message_id": "answer"},
        "",
    ),
    "a citation": ("citations.show", {"citation_id": "citation"}, ""),
    "sources": ("chat.show", {"conversation_id": "conversation"}, "?sources={answer}"),
    "switches beside": ("chat.show", {"conversation_id": "conversation"}, "?documents=1"),
    "share a conversation": ("sharing.show", {"conversation_id": "conversation"}, ""),
    "shared with you": ("sharing.show_all", {}, ""),
    "a shared conversation": ("sharing.read", {"conversation_id": "shared"}, ""),
    "go to": ("go.show", {}, "?find=leave"),
    "keys": ("go.show_keys", {}, ""),
    "trash": ("trash.show", {}, ""),
    "delete for good": ("trash.confirm_purge", {"document_id": "trashed"}, ""),
    "notifications": ("notifications.index", {}, ""),
    "account": ("account.show", {}, ""),
    "delete the account": ("account.confirm_delete", {}, ""),
    "confirm the password": ("confirming.show", {}, ""),
    "sessions": ("sessions.show", {}, ""),
    "second factors": ("second_factors.show", {}, ""),
    "sign out": ("sign_in.confirm_sign_out", {}, ""),
    "invitation": ("sign_in.show_invitation", {"token": "invitation"}, ""),
    "overview": ("admin_overview.show", {}, ""),
    "components": ("admin_overview.show_components", {}, ""),
    "administration": ("admin.show", {}, ""),
    "a user": ("admin_users.show", {"user_id": "user"}, ""),
    "delete a user": ("admin_users.confirm_delete", {"user_id": "user"}, ""),
    "groups": ("admin_groups.show_all", {}, ""),
    "a group": ("admin_groups.show", {"group_id": "group"}, ""),
    "delete a group": ("admin_groups.confirm_delete", {"group_id": "group"}, ""),
    "jobs": ("admin_jobs.show", {}, ""),
    "models": ("admin_models.show", {}, ""),
    "search settings": ("admin_search.show", {}, ""),
    "answers": ("admin_answers.show", {}, ""),
    "questions": ("admin_questions.show", {}, ""),
    "audit log": ("admin_audit.show", {}, ""),
    "API reference": ("api_docs.show", {}, ""),
    "not found": ("documents.index", {}, "/nowhere"),
}
# Endpoints that are not pages, or only lead to one: files, fragments, redirects.
NO_PAGES = {
    *("assets.own", "assets.vendor", "documents.progress"),
    *("notifications.show_state", "reading.original_file", "revisions.original_file"),
    "reading.preview_move",
    *("page_views.page", "page_views.picture", "page_views.image", "previews.show"),
    *("chat.find_about", "chat.export", "messages.show", "citations.card", "confirming.resume"),
    *("admin_questions.export", "admin_audit.export", "oidc.begin_sign_in", "oidc.finish"),
    # Pages in the middle of a flow that has its own tests.
    *("sign_in.show", "sign_in.show_password_reset", "second_step.show"),
    "sign_in.show_registration",
    *("second_factors.show_totp", "admin_models.confirm_drop"),
}


@dataclass(frozen=True)
class Pictured:
    """A portal, and the ids of the objects that its pages show."""

    portal: LightPortal
    ids: dict[str, Any]

    def address(self, app: Flask, name: str) -> str:
        endpoint, values, rest = PAGES[name]
        found = {key: self.ids.get(value, value) for key, value in values.items()}
        with app.test_request_context():
            return app.url_for(endpoint, **found) + rest.format(**self.ids)


@pytest.fixture(scope="module")
def pictured(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pictured]:
    with library({"差旅与报销制度.md": ZH}) as made:
        followed = made.directory / "followed"
        followed.mkdir()
        (followed / "film.mp4").write_bytes(b"Of a type that is not read.")
        sources = {"directories": (followed,)}
        services = build_services(made.settings(sources=sources))
        portal = Portal(services, accounts.find_user(services, "admin"))
        admin = portal.admin
        handbook = portal.add(HANDBOOK, name="Team handbook.md", domain="people")
        pdf = files.write_pdf(
            tmp_path_factory.mktemp("pictures") / "Harbour notes.pdf",
            [["Harbour notes", "The lamp is lit at dusk."]],
        )
        harbour = portal.add(pdf.read_bytes(), name=pdf.name)
        illustrated_notes = portal.add(illustrated.notes(illustrated.png()), name="Lamps.md")
        trashed = portal.add("A draft that was replaced.", name="Old draft.txt")
        documents.delete_document(services, admin, trashed.id)
        mei = portal.user("Mei Lin")
        group = groups.create_group(services, admin, name="Field team", description="Two sites.")
        groups.add_member(services, admin, group, mei.name)
        folder = folders.create_folder(
            services, admin, name="People", visibility=FolderVisibility.MEMBERS
        )
        for kind, name in ((MemberKind.GROUP, "Field team"), (MemberKind.USER, mei.name)):
            folder_members.set_member(
                services, admin, folder, kind=kind, name=name, role=FolderRole.READER
            )
        folder_sources.set_source(
            *(services, admin, folder), kind="directory", address=str(followed), every_minutes=60
        )
        syncing.sync_due(services)
        bulk.apply(services, admin, BulkTarget((handbook.id,)), BulkAction.MOVE, folder)
        bulk.apply(services, admin, BulkTarget((handbook.id,)), BulkAction.ADD_TAG, "2026")
        skipped = tuple(
            SkippedDocument(one.id, one.title, reason)
            for one, reason in ((handbook, Conflict.code), (harbour, InvalidInput.code))
        )
        report = BulkResult(None, 3, skipped, skipped_count=2)
        begun = conversations.create(services, admin, "").id
        answer = ask(services, admin, begun, QUESTION)
        question = conversations.messages(services, admin, begun)[0]
        travel = next(
            document
            for document in documents.list_documents(services, admin).items
            if document.title.startswith("差旅")
        )
        shared = conversations.create(services, mei, "").id
        ask(services, mei, shared, QUESTION)
        sharing.add_reader(services, mei, shared, admin.name)
        sharing.add_reader(services, admin, begun, mei.name)
        ids = {
            "handbook": handbook.id,
            "travel": travel.id,
            "pdf": harbour.id,
            "illustrated": illustrated_notes.id,
            "trashed": trashed.id,
            "folder": folder,
            "report": bulk.add_report(services, admin, BulkAction.READ_AGAIN, report),
            "conversation": begun,
            "question": question.id,
            "answer": answer.id,
            "citation": answer.citations[0].id,
            "shared": shared,
            "user": mei.id,
            "group": group,
            "invitation": invitations.invite(services, admin).secret,
        }
        services.database.dispose()
        with light_portal(made, browser, sources=sources) as running:
            yield Pictured(running, ids)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scheme" in metafunc.fixturenames:
        ways = list(itertools.product(LANGUAGES, SCHEMES, WIDTHS))
        # English texts are longer, and the dark theme has less contrast to spare.
        usual = [("en", "dark", 360), ("zh-CN", "light", 1440)]
        chosen = ways if metafunc.config.getoption("screenshots") else usual
        metafunc.parametrize(("language", "scheme", "width"), chosen)


def test_every_page_has_a_picture(pictured: Pictured) -> None:
    app = create_app(pictured.portal.services)
    shown = {endpoint for endpoint, _, _ in PAGES.values()} | NO_PAGES
    pages = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
        and app.view_functions[rule.endpoint].__module__.startswith("portal.web")
    }
    assert pages == shown & pages
    assert shown <= pages


@pytest.mark.parametrize("language", LANGUAGES)
def test_navigation_and_rows_fit_small_phones(pictured: Pictured, language: str) -> None:
    window = pictured.portal.open_window(language, viewport={"width": 320, "height": 640})
    window.page.goto("/documents")
    for width in (320, 360):
        window.page.set_viewport_size({"width": width, "height": 640})
        is_cut = "nav => nav.scrollWidth > nav.clientWidth"
        assert not window.page.locator(".site-nav").evaluate(is_cut), width
        row = window.page.get_by_test_id("document-row").first
        middles = row.locator(".document-end > *").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().bottom"
            " + one.getBoundingClientRect().top)"
        )
        assert width < 360 or max(middles) - min(middles) < 4, middles
    pictured.portal.close_windows()


@pytest.mark.timeout(600)
def test_pages_are_accessible_and_fit(
    pictured: Pictured,
    assert_accessible: Callable[[Page], None],
    request: pytest.FixtureRequest,
    language: str,
    scheme: str,
    width: int,
) -> None:
    is_asked = request.config.getoption("screenshots")
    kept = request.config.rootpath / "screenshots"
    folder = kept / f"{language} {scheme} {width}"
    if is_asked:
        folder.mkdir(parents=True, exist_ok=True)
    app = create_app(pictured.portal.services)
    window = pictured.portal.open_window(language, viewport={"width": width, "height": 900})
    page = window.page
    # Windows share a session, which may expire before the last combination.
    services = pictured.portal.services
    admin = accounts.find_user(services, "admin")
    cookies = {THEME: scheme, SESSION: Portal(services, admin).token(admin)}
    page.context.add_cookies(
        [{"name": name, "value": cookies[name], "url": pictured.portal.url} for name in cookies]
    )
    faults = []
    for name in PAGES:
        page.goto(pictured.address(app, name))
        if "/login" in page.url:
            faults.append(f"{name}: asks to sign in")
        page.wait_for_function(ALL_IS_HERE, timeout=60_000)
        for fault, found in page.evaluate(FAULTS).items():
            faults += [f"{name}: {fault}: {one}" for one in found]
        if is_asked:
            # Given a path, Playwright would write in a thread that outlives the portal.
            (folder / f"{name}.png").write_bytes(page.screenshot(full_page=True))
        try:
            assert_accessible(page)
        except AssertionError as error:
            faults.append(f"{name}: {error}")
    if is_asked:
        _write_index(kept)
    pictured.portal.close_windows()
    assert not faults, "\n".join(faults)


def _write_index(folder: Path) -> None:
    """Write an index of all pictures, with one row for each page of the portal."""
    ways = sorted(one.name for one in folder.iterdir() if one.is_dir())
    rows = "".join(
        f"<h2>{html.escape(name)}</h2>"
        + "".join(
            f'<figure><a href="{way}/{name}.png"><img src="{way}/{name}.png" loading="lazy"'
            f' width="240" alt=""></a><figcaption>{way}</figcaption></figure>'
            for way in ways
        )
        for name in PAGES
    )
    style = "<style>figure { display: inline-block; margin: 8px; vertical-align: top }</style>"
    (folder / "index.html").write_text(f"<!doctype html><meta charset=utf-8>{style}{rows}", "utf-8")
