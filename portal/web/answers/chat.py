"""Pages of conversations: their list, and a conversation with its messages."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext
from markupsafe import Markup
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response

from portal.domain.conversations import (
    MAX_MESSAGE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    AnswerBegun,
    Citation,
    Message,
)
from portal.domain.documents.selection import AskScope
from portal.errors import InvalidInput, NotFound, NotSignedIn, PortalError, existing
from portal.http import context
from portal.http.messages import error_message
from portal.http.responses.downloads import conversation_file
from portal.services.answers import answering, conversations, sharing, writers
from portal.services.answers.streaming import AnswerStream
from portal.services.documents import library, switches
from portal.web.answers import about
from portal.web.answers.rendering import questions_of
from portal.web.blueprint import PageBlueprint
from portal.web.documents.reading.document import source_values
from portal.web.documents.selection import switches_values
from portal.web.layout import IN_DIALOG, Answer, remember, see_other, wants_fragment
from portal.web.security import next_path, referring_path
from portal.web.shown_rows import append_rows, rows_limit, shown_values

CONVERSATIONS_PER_STEP = 30

blueprint = PageBlueprint("chat", __name__, "/chat")


@blueprint.get("")
def index() -> Answer:
    values = _list_values()
    if wants_fragment("conversation-list"):
        return render_template("fragments/conversations/_list.html", **values)
    if wants_fragment("more-conversations"):
        rows = render_template("fragments/conversations/_rows.html", **values)
        return append_rows(rows, len(values["page"].items))
    return render_template("pages/answers/chat.html", **values)


@blueprint.post("")
def create() -> Answer:
    """Create a conversation and answer its first question, if there is one. Scripts create an empty
    conversation and then ask in it, to show the answer while it is written."""
    services, user = context.caller()
    question = request.form.get("content", "").strip()
    if about.is_changed():
        return render_template("pages/answers/chat.html", **_list_values() | {"draft": question})
    if "search" in request.form:
        # The second button of the home page, for browsers without scripts.
        return see_other(url_for("search.show", q=question or None))
    narrowed = about.read()
    scope = _scope(request.form)
    conversation = conversations.create(services, user, scope=scope)
    address = url_for("chat.show", conversation_id=conversation.id)
    if wants_fragment():
        # That page asks the question; its address has the scope.
        with_question = url_for(
            "chat.show",
            conversation_id=conversation.id,
            about=request.form.getlist("about") or None,
        )
        return Response("", headers={"HX-Redirect": with_question})
    if not question:
        return see_other(address)
    try:
        answer_id = run(answering.ask(services, user, conversation.id, question, scope=narrowed))
    except NotSignedIn:
        raise
    except PortalError as error:
        conversations.discard(services, user, conversation.id)
        values = _list_values() | {"error": error_message(error), "draft": question}
        return render_template("pages/answers/chat.html", **values), error.status
    return see_other(f"{address}#message-{answer_id}")


@blueprint.get("/about")
def find_about() -> str:
    """Show documents, folders and tags to ask about, for the list that "@" opens."""
    words = request.args.get("find", "").strip()
    found = conversations.find_for_scope(*context.caller(), words)
    return render_template("fragments/conversations/_about_options.html", found=found)


@blueprint.get("/<uuid:conversation_id>")
def show(conversation_id: UUID) -> Answer:
    """Show a conversation, and beside it the pane in the address: `source` is one citation,
    `sources` are all of an answer, `documents` the switches. Redirect to the page of a shared
    conversation if it belongs to another user."""
    if not wants_fragment("chat-side"):
        try:
            values = page_values(conversation_id)
        except NotFound:
            sharing.require_shared(*context.caller(), conversation_id)
            return see_other(url_for("sharing.read", conversation_id=conversation_id))
        return render_template("pages/answers/conversation.html", **values)
    pane = _pane(conversation_id, conversations.messages(*context.caller(), conversation_id))
    if pane is None:
        raise NotFound
    return pane


@blueprint.get("/<uuid:conversation_id>/rename")
def show_rename(conversation_id: UUID) -> Answer:
    return _rename_form(conversation_id)


@blueprint.post("/<uuid:conversation_id>/rename")
def rename(conversation_id: UUID) -> Answer:
    title = request.form.get("title", "")
    try:
        conversations.rename(*context.caller(), conversation_id, title)
    except InvalidInput as error:
        values = {"error": error_message(error), "title": title}
        return _rename_form(conversation_id, **values), error.status, IN_DIALOG
    after = _open_page() or next_path() or url_for("chat.show", conversation_id=conversation_id)
    return see_other(after, gettext("Saved."))


@blueprint.post("/<uuid:conversation_id>/pin")
def pin(conversation_id: UUID) -> Answer:
    after = _open_page() or next_path() or url_for("chat.index")
    try:
        conversations.pin(*context.caller(), conversation_id, pinned="off" not in request.form)
    except InvalidInput as error:
        return see_other(after, error_message(error), kind="error")
    return see_other(after)


@blueprint.post("/<uuid:conversation_id>/delete")
def delete(conversation_id: UUID) -> Answer:
    conversations.delete(*context.caller(), conversation_id)
    index, page = url_for("chat.index"), _open_page()
    undo = url_for("chat.restore", conversation_id=conversation_id)
    if page and urlsplit(page).path == url_for("chat.show", conversation_id=conversation_id):
        remember(gettext("Conversation deleted."), kind="success", undo=undo)
        return Response("", headers={"HX-Redirect": index})
    return see_other(page or index, gettext("Conversation deleted."), undo=undo)


@blueprint.post("/<uuid:conversation_id>/restore")
def restore(conversation_id: UUID) -> Answer:
    conversations.restore(*context.caller(), conversation_id)
    address = url_for("chat.show", conversation_id=conversation_id)
    return see_other(address, gettext("Conversation restored."))


@blueprint.get("/<uuid:conversation_id>/export")
def export(conversation_id: UUID) -> Answer:
    """Download the conversation as Markdown or for Word, with its sources."""
    return conversation_file(conversation_id, request.args.get("format"))


def run(stream: AnswerStream) -> UUID | None:
    """Consume an answer for browsers without scripts; return its id."""
    answer_id = None
    with closing(stream):
        for event in stream:
            answer_id = event.answer_id if isinstance(event, AnswerBegun) else answer_id
    return answer_id


def page_values(conversation_id: UUID) -> dict[str, Any]:
    """Return the template values of a conversation's page."""
    services, user = context.caller()
    conversation = conversations.get(services, user, conversation_id)
    messages = conversations.messages(services, user, conversation_id)
    enabled_count, total_count = switches.count_enabled(services, user, conversation_id)
    return {
        **_list_values(),
        "pane": _pane(conversation_id, messages),
        "conversation": conversation,
        "conversation_id": conversation_id,
        "messages": messages,
        "questions": questions_of(messages),
        "scope": conversations.scope_of(services, user, conversation_id),
        "enabled_count": enabled_count,
        "total_count": total_count,
        "is_fragment": False,
    }


def _pane(conversation_id: UUID, messages: Sequence[Message]) -> Markup | None:
    """Render the pane that the address asks for; None if it asks for none. Raises NotFound."""
    values: dict[str, Any] = {"conversation_id": conversation_id}
    if "documents" in request.args:
        name = "fragments/selection/_drawer.html"
        values |= switches_values(conversation_id)
    elif "sources" in request.args:
        name = "fragments/citations/_panel.html"
        stated = request.args["sources"]
        answered = [one for one in messages if one.citations and stated in ("latest", str(one.id))]
        message = existing(answered[-1] if answered else None)
        values |= {"message": message, "at": request.args.get("at", 0, type=int)}
    elif "source" in request.args:
        name = "fragments/citations/_reader.html"
        message, citation = _find_cited(messages, request.args.get("source", type=UUID))
        source = source_values(citation, conversation_id)
        values |= {"source": source, "source_message": message}
    else:
        return None
    return Markup(render_template(name, **values))  # noqa: S704 - the template escapes


def _find_cited(messages: Sequence[Message], citation_id: UUID | None) -> tuple[Message, Citation]:
    """Return a citation and its answer. Raises NotFound if it is not in the conversation."""
    for message in messages:
        for citation in message.citations:
            if citation.id == citation_id:
                return message, citation
    raise NotFound


def _list_values() -> dict[str, Any]:
    services, user = context.caller()
    text = request.args.get("q", "").strip()
    cursor = request.args.get("cursor") or None
    page = conversations.list_conversations(
        services,
        user,
        contains=text,
        pinned=False,
        cursor=cursor,
        limit=rows_limit(CONVERSATIONS_PER_STEP),
    )
    pinned = conversations.list_conversations(
        services, user, contains=text, pinned=True, limit=conversations.MAX_PINNED
    )
    return {
        "page": page,
        "pinned": pinned.items,
        "text": text,
        **shown_values(len(page.items)),
        "is_empty": not page.items and library.is_empty(services, user),
        **composer_values(),
    }


def composer_values() -> dict[str, Any]:
    """Return the template values of the form for a new conversation."""
    services, user = context.caller()
    return {
        "scope": conversations.name_scope(services, user, _scope(request.values)),
        "writer": writers.current(services),
        "max_question_characters": MAX_MESSAGE_CHARACTERS,
        "error": None,
        "draft": "",
        **about.values(),
    }


def _open_page() -> str | None:
    """Return the address of the page on which a script changed a conversation, with the search and
    the number of rows of its list; the script reads the new list and title from there. None for
    other requests."""
    page = referring_path() if wants_fragment() else None
    if page is None:
        return None
    parts = urlsplit(page)
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] == "shown"]
    return parts._replace(query=urlencode([*kept, ("q", request.form.get("q", ""))])).geturl()


def _scope(values: MultiDict[str, str]) -> AskScope:
    """Return the scope of a new conversation; an empty one means everything. Raises NotFound."""
    try:
        documents, folders = (
            tuple(UUID(one) for one in values.getlist(name)) for name in ("document", "folder")
        )
    except ValueError as error:
        raise NotFound from error
    return AskScope(documents, folders, tuple(filter(None, values.getlist("tag"))))


def _rename_form(conversation_id: UUID, **more: Any) -> str:
    """Render the form that renames a conversation, in the dialog or as a page."""
    conversation = conversations.get(*context.caller(), conversation_id)
    values = {
        "conversation": conversation,
        "title": conversation.title,
        "error": None,
        "max_title_characters": MAX_TITLE_CHARACTERS,
        "next": next_path(),
    }
    name = (
        "fragments/conversations/_rename.html"
        if wants_fragment()
        else "pages/answers/rename_conversation.html"
    )
    return render_template(name, **(values | more))
