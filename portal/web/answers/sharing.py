"""Shared conversations: for their owners, and as their readers see them."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.errors import InvalidInput, NoSuchAccount, NotFound
from portal.http import context
from portal.http.hosts import external_url
from portal.http.messages import error_message
from portal.services.answers import conversations, sharing
from portal.web.blueprint import PageBlueprint
from portal.web.layout import IN_DIALOG, Answer, fragments, see_other, toast, wants_fragment

blueprint = PageBlueprint("sharing", __name__)


@blueprint.get("/chat/<uuid:conversation_id>/share")
def show(conversation_id: UUID) -> Answer:
    """Show the readers of a conversation, and links to export it."""
    return _form(conversation_id)


@blueprint.post("/chat/<uuid:conversation_id>/share")
def add(conversation_id: UUID) -> Answer:
    name = request.form.get("name", "").strip()
    try:
        sharing.add_reader(*context.caller(), conversation_id, name)
    except (InvalidInput, NoSuchAccount) as error:
        form = _form(conversation_id, error=_words(error, name), name=name)
        return form, InvalidInput.status, IN_DIALOG
    message = gettext("%(name)s can now read this conversation.", name=name)
    if wants_fragment():
        return _form(conversation_id) + fragments(toast(message, kind="success"))
    return see_other(url_for("chat.show", conversation_id=conversation_id), message)


@blueprint.post("/chat/<uuid:conversation_id>/share/<uuid:user_id>/remove")
def remove(conversation_id: UUID, user_id: UUID) -> Answer:
    sharing.remove_reader(*context.caller(), conversation_id, user_id)
    return see_other(
        url_for("chat.show", conversation_id=conversation_id), gettext("No longer shared.")
    )


@blueprint.get("/shared")
def show_all() -> Answer:
    return render_template(
        "pages/answers/shared.html", shared=sharing.list_shared(*context.caller())
    )


@blueprint.get("/shared/<uuid:conversation_id>")
def read(conversation_id: UUID) -> Answer:
    """Show another user's conversation, as far as the reader may see its sources. Redirect to the
    reader's own conversation."""
    services, user = context.caller()
    try:
        shared, messages = sharing.read(services, user, conversation_id)
    except NotFound:
        own = conversations.get(services, user, conversation_id)
        return see_other(url_for("chat.show", conversation_id=own.id))
    return render_template(
        "pages/answers/shared_conversation.html", shared=shared, messages=messages
    )


@blueprint.post("/shared/<uuid:conversation_id>/leave")
def leave(conversation_id: UUID) -> Answer:
    sharing.leave(*context.caller(), conversation_id)
    return see_other(url_for("sharing.show_all"), gettext("Removed from your list."))


def _form(conversation_id: UUID, *, error: str | None = None, name: str = "") -> str:
    services, user = context.caller()
    values = {
        "conversation": conversations.get(services, user, conversation_id),
        "readers": sharing.list_readers(services, user, conversation_id),
        "link": external_url(url_for("sharing.read", conversation_id=conversation_id)),
        "error": error,
        "name": name,
    }
    template = (
        "fragments/conversations/_share.html" if wants_fragment() else "pages/answers/share.html"
    )
    return render_template(template, **values)


def _words(error: InvalidInput | NoSuchAccount, name: str) -> str:
    if isinstance(error, NoSuchAccount):
        return str(gettext("There is no user “%(name)s”.", name=name))
    return error_message(error)
