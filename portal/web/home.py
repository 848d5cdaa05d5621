"""The home page: a field that searches as you type and asks on Enter, recent and new items,
suggested questions, and the example documents."""

from __future__ import annotations

from typing import Any

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.domain.documents import DocumentFilter, DocumentStatus
from portal.errors import NotSignedIn, PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.services.answers import conversations, suggesting
from portal.services.documents import examples, library, notifications
from portal.services.people import accounts
from portal.services.search import engine, saved
from portal.web.answers import chat
from portal.web.blueprint import PageBlueprint
from portal.web.i18n import language
from portal.web.layout import Answer, go_back, see_other, wants_fragment
from portal.web.search.pages import MAX_QUESTION_CHARACTERS, by_document, with_whole_words
from portal.web.search.query import SearchQuery

MAX_RECENT = 5
MAX_FOUND = 5
MAX_NEWS = 8
# The page loads the suggestions after it is shown.
_NO_SUGGESTIONS = {"suggested": None, "are_all_tried": False}

blueprint = PageBlueprint("home", __name__)


@blueprint.get("/")
def show() -> Answer:
    if wants_fragment("home-results"):
        return _find(request.args.get("content", "").strip()[:MAX_QUESTION_CHARACTERS])
    services, user = context.caller()
    if wants_fragment("home-suggestions"):
        return render_template("fragments/home/_suggestions.html", **_suggestions())
    ready = DocumentFilter(status=DocumentStatus.READY)
    since = accounts.previous_visit(services, user)
    news = library.list_news(services, user, since=since, limit=MAX_NEWS) if since else []
    documents = library.list_documents(services, user, filters=ready, limit=MAX_RECENT).items
    is_empty = library.is_empty(services, user)
    is_few = not is_empty and len(documents) < MAX_RECENT
    return render_template(
        "pages/home.html",
        since=since,
        news=news,
        has_examples=not is_empty and examples.is_loaded(services, user),
        **(_suggestions() if "suggest" in request.args else _NO_SUGGESTIONS),
        recent=conversations.list_conversations(services, user, limit=MAX_RECENT).items,
        documents=documents,
        is_empty=is_empty,
        is_first_in_work=is_few and bool(notifications.state(services, user).in_work),
        saved=saved.list_saved(services, user),
        **chat.composer_values(),
    )


@blueprint.post("/examples")
def load_examples() -> Answer:
    try:
        examples.load(*context.caller())
    except PortalError as error:
        return see_other(url_for("home.show"), error_message(error), kind="error")
    words = gettext("Example documents added. They will be ready in a moment.")
    return see_other(url_for("home.show"), words)


@blueprint.post("/examples/remove")
def remove_examples() -> Answer:
    examples.remove(*context.caller())
    return go_back(url_for("home.show"), gettext("Example documents removed."))


def _suggestions() -> dict[str, Any]:
    of_reader = "zh" if language().startswith("zh") else "en"
    found = suggesting.suggest_questions(*context.caller(), language=of_reader)
    return {"suggested": found.questions, "are_all_tried": found.is_complete}


def _find(text: str) -> Answer:
    """Show the best documents for the text typed so far."""
    values: dict[str, Any] = {"text": text, "groups": [], "error": None}
    if text:
        try:
            outcome = engine.search_or_words(*context.caller(), SearchQuery(text).request())
            groups = by_document(with_whole_words(outcome).hits)
            strong = [group for group in groups if not group.is_weak]
            values["groups"] = (strong or groups)[:MAX_FOUND]
        except NotSignedIn:
            raise
        except PortalError as error:
            values["error"] = error_message(error)
    return render_template("fragments/home/_results.html", **values)
