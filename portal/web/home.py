"""The front door: one field that searches while one types and asks on Enter, and what is recent."""

from __future__ import annotations

from typing import Any

from apiflask import APIBlueprint
from flask import render_template, request

from portal.domain.documents import DocumentFilter, DocumentStatus
from portal.errors import NotSignedIn, PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.services.answers import conversations
from portal.services.documents import library
from portal.services.search import engine
from portal.web.answers import chat
from portal.web.layout import Answer, wants_fragment
from portal.web.search.pages import MAX_QUESTION_CHARACTERS, by_document, with_whole_words
from portal.web.search.query import SearchQuery

MAX_RECENT = 5
MAX_FOUND = 5

blueprint = APIBlueprint("home", __name__, enable_openapi=False)


@blueprint.get("/")
def show() -> Answer:
    if wants_fragment("home-results"):
        return _find(request.args.get("content", "").strip()[:MAX_QUESTION_CHARACTERS])
    services, user = context.caller()
    ready = DocumentFilter(status=DocumentStatus.READY)
    return render_template(
        "pages/home.html",
        recent=conversations.list_conversations(services, user, limit=MAX_RECENT).items,
        documents=library.list_documents(services, user, filters=ready, limit=MAX_RECENT).items,
        is_empty=library.is_empty(services, user),
        **chat.composer_values(),
    )


def _find(text: str) -> Answer:
    """Show the best documents for what was typed so far."""
    values: dict[str, Any] = {"text": text, "groups": [], "error": None}
    if text:
        try:
            outcome = engine.search_or_words(*context.caller(), SearchQuery(text).request())
            values["groups"] = by_document(with_whole_words(outcome).hits)[:MAX_FOUND]
        except NotSignedIn:
            raise
        except PortalError as error:
            values["error"] = error_message(error)
    return render_template("fragments/home/_results.html", **values)
