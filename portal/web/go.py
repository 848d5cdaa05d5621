"""The command palette, with pages, documents, conversations and actions; the list of shortcuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.domain.documents import DocumentFilter
from portal.errors import N_
from portal.http import context
from portal.services.answers import conversations
from portal.services.documents import library
from portal.web.blueprint import PageBlueprint
from portal.web.i18n import language
from portal.web.layout import THEMES, Answer, theme, wants_fragment
from portal.web.security import next_path, referring_path

_MAX_FOUND = 6
_MAX_CHARACTERS = 200

_PAGES = (
    ("home.show", N_("Home"), "house"),
    ("documents.index", N_("Documents"), "files"),
    ("search.show", N_("Search"), "search"),
    ("chat.index", N_("Ask"), "message-square"),
    ("sharing.show_all", N_("Shared with you"), "share-2"),
    ("trash.show", N_("Trash"), "trash-2"),
    ("notifications.index", N_("Notifications"), "bell"),
    ("account.show", N_("Account"), "settings"),
)
_ADMIN_PAGES = (
    ("admin_overview.show", N_("Overview"), "chart-column"),
    ("admin.show", N_("Users"), "users"),
    ("admin_groups.show_all", N_("Groups"), "users"),
    ("admin_search.show", N_("Search settings"), "sliders-horizontal"),
    ("admin_answers.show", N_("Answers"), "quote"),
    ("admin_questions.show", N_("Questions"), "circle-question-mark"),
    ("admin_jobs.show", N_("Jobs"), "list-checks"),
    ("admin_models.show", N_("Embedding models"), "boxes"),
    ("admin_audit.show", N_("Audit log"), "scroll-text"),
    ("admin_overview.show_components", N_("Components"), "component"),
)

blueprint = PageBlueprint("go", __name__)


@dataclass(frozen=True, slots=True)
class Item:
    """A link, or with `posts` a form with these fields."""

    label: str
    address: str
    icon: str
    posts: dict[str, str] | None = None
    aliases: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    label: str
    items: list[Item] = field(default_factory=list)


@blueprint.get("/go")
def show() -> Answer:
    words = request.args.get("find", "").strip()[:_MAX_CHARACTERS]
    # After changing the language or theme, the user comes back here.
    back = next_path() or referring_path() or url_for("home.show")
    values = {"words": words, "groups": list(_groups(words)), "back": back}
    if wants_fragment("go-results"):
        return render_template("fragments/go/_results.html", **values)
    name = "fragments/go/_go.html" if wants_fragment() else "pages/go.html"
    return render_template(name, **values)


@blueprint.get("/keys")
@context.public
def show_keys() -> Answer:
    name = "fragments/go/_keys.html" if wants_fragment() else "pages/keys.html"
    return render_template(name)


def _groups(words: str) -> Iterator[Group]:
    """Yield the matching items by group; without words, everything except documents."""
    for label, items in (
        (gettext("Actions"), _matching_actions(words)),
        (gettext("Pages"), _pages(words)),
        (gettext("Documents"), _documents(words)),
        (gettext("Conversations"), _conversations(words)),
        # Enter opens the first result, so matches by name precede full-text searches.
        (gettext("Search"), _searches(words)),
    ):
        if items:
            yield Group(label, items)


def _searches(words: str) -> list[Item]:
    if not words:
        return []
    label = gettext("Search for “%(query)s”", query=words)
    return [Item(label, url_for("search.show", q=words), "search")]


def _matching_actions(words: str) -> list[Item]:
    return [action for action in _actions() if _matches(words, action.label, action.aliases)]


def _actions() -> Iterator[Item]:
    address = url_for("chat.create")
    yield Item(gettext("New conversation"), address, "plus", posts={}, aliases="New conversation")
    address = url_for("documents.index", _anchor="upload-form")
    yield Item(gettext("Upload documents"), address, "upload", aliases="Upload documents")
    other = "en" if language() == "zh-CN" else "zh-CN"
    name = {"en": "English", "zh-CN": "中文"}[other]
    address = url_for("preferences.set_language")
    words = gettext("Language: %(name)s", name=name)
    yield Item(words, address, "languages", {"language": other}, "language 语言")
    for value, label in THEMES.items():
        if value != theme():
            words = gettext("Appearance: %(name)s", name=gettext(label))
            address, aliases = url_for("preferences.set_theme"), f"{value} theme 主题"
            yield Item(words, address, "sun-moon", {"theme": value}, aliases)


def _pages(words: str) -> list[Item]:
    pages = [*_PAGES, *(_ADMIN_PAGES if context.user().is_admin else ())]
    return [
        Item(gettext(label), url_for(endpoint), symbol)
        for endpoint, label, symbol in pages
        if _matches(words, gettext(label), str(label))
    ]


def _documents(words: str) -> list[Item]:
    if not words:
        return []
    found = library.list_documents(
        *context.caller(), filters=DocumentFilter(title_contains=words), limit=_MAX_FOUND
    )
    return [
        Item(item.title, url_for("reading.show", document_id=item.id), "file-text")
        for item in found.items
    ]


def _conversations(words: str) -> list[Item]:
    found = conversations.list_conversations(*context.caller(), contains=words, limit=_MAX_FOUND)
    return [
        Item(
            item.title or gettext("New conversation"),
            url_for("chat.show", conversation_id=item.id),
            "message-square",
        )
        for item in found.items
    ]


def _matches(words: str, *labels: str) -> bool:
    return any(words.casefold() in label.casefold() for label in labels)
