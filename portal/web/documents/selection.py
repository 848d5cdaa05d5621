"""Switches of documents and folders, for a user and in one conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from flask import Flask, render_template, request, url_for
from flask_babel import gettext, ngettext

from portal.domain.documents.selection import (
    DocumentSwitch,
    FolderSwitch,
    SelectionSource,
    Switch,
)
from portal.errors import N_, MalformedRequest
from portal.http import context
from portal.services.answers import conversations
from portal.services.documents import folders, switches
from portal.web.blueprint import PageBlueprint
from portal.web.documents.folders.forms import parse_id
from portal.web.layout import Answer, fragments, go_back, wants_fragment

SWITCHES_PER_STEP = 50
MAX_FOLDERS_SHOWN = 200
# The states of a switch; None inherits from the level above.
STATES: dict[str, bool | None] = {"inherit": None, "on": True, "off": False}

CAUSES = {
    (SelectionSource.SYSTEM, True): N_("On (system default)"),
    (SelectionSource.USER, True): N_("On (your default)"),
    (SelectionSource.USER, False): N_("Off (your default)"),
    (SelectionSource.CONVERSATION, True): N_("On in this conversation"),
    (SelectionSource.CONVERSATION, False): N_("Off in this conversation"),
}

blueprint = PageBlueprint("selection", __name__)


FOLDER_CAUSES = {
    (SelectionSource.USER, True): N_("On: folder “%(name)s”, for you"),
    (SelectionSource.USER, False): N_("Off: folder “%(name)s”, for you"),
    (SelectionSource.CONVERSATION, True): N_("On: folder “%(name)s”, in this conversation"),
    (SelectionSource.CONVERSATION, False): N_("Off: folder “%(name)s”, in this conversation"),
}


def cause(switch: Switch) -> str:
    """Return in words whether something is on and which switch decides; for a folder with documents
    that differ from its switch, how many are on."""
    if isinstance(switch, FolderSwitch) and switch.counts and switch.has_exceptions:
        enabled_count, total_count = switch.counts
        words = ngettext(
            "%(enabled)s of %(num)s document on",
            "%(enabled)s of %(num)s documents on",
            total_count,
            enabled=enabled_count,
        )
        return str(words)
    enabled, source, folder = switch.decision
    if folder is None or folder.name is None:
        return str(gettext(CAUSES[source, enabled]))
    return str(gettext(FOLDER_CAUSES[source, enabled], name=folder.name))


@blueprint.post("/documents/<uuid:document_id>/selection")
def set_default(document_id: UUID) -> Answer:
    """Enable or disable a document for the user, in conversations without an override."""
    switch = switches.set_switch(*context.caller(), None, document_id, _read_state())
    if wants_fragment():
        return render_template("fragments/selection/_toggle.html", switch=switch)
    return go_back(url_for("documents.index", _anchor=f"document-{document_id}"))


@blueprint.post("/folders/<uuid:folder_id>/selection")
def set_folder_default(folder_id: UUID) -> Answer:
    """Enable or disable a folder for the user, with everything that is added to it later."""
    switches.set_folder_switch(*context.caller(), None, folder_id, _read_state())
    # The page is reloaded; the anchor keeps the keyboard focus at the switch.
    return go_back(url_for("documents.index", folder=folder_id, _anchor="folder-toggle"))


@blueprint.get("/chat/<uuid:conversation_id>/documents")
def show(conversation_id: UUID) -> Answer:
    """Show the switches of one conversation, in the drawer or as a page."""
    values = switches_values(conversation_id)
    if wants_fragment("selection-list"):
        return render_template("fragments/selection/_list.html", **values)
    if wants_fragment("more-switches"):
        return render_template("fragments/selection/_rows.html", **values)
    name = (
        "fragments/selection/_drawer.html" if wants_fragment() else "pages/documents/selection.html"
    )
    return render_template(name, **values)


@blueprint.post("/chat/<uuid:conversation_id>/documents")
def set_all(conversation_id: UUID) -> Answer:
    """Enable or disable all documents in a conversation, or restore the defaults."""
    switches.set_all_overrides(*context.caller(), conversation_id, _read_state())
    if wants_fragment():
        values = switches_values(conversation_id)
        return fragments(("fragments/selection/_list.html", values), *_counts(values))
    return go_back(url_for("selection.show", conversation_id=conversation_id))


@blueprint.post("/chat/<uuid:conversation_id>/folders/<uuid:folder_id>")
def set_folder(conversation_id: UUID, folder_id: UUID) -> Answer:
    """Enable or disable a folder in a conversation."""
    switches.set_folder_switch(
        *context.caller(), conversation_id, folder_id, _read_state(), clears_inside=True
    )
    if wants_fragment():
        # Documents of the folder may be in the filtered list.
        values = switches_values(conversation_id)
        return fragments(("fragments/selection/_list.html", values), *_counts(values))
    return go_back(f"{_panel(conversation_id)}#switch-{folder_id}")


@blueprint.post("/chat/<uuid:conversation_id>/documents/<uuid:document_id>")
def set_one(conversation_id: UUID, document_id: UUID) -> Answer:
    """Set the switch of one document in a conversation."""
    services, user = context.caller()
    switch = switches.set_switch(services, user, conversation_id, document_id, _read_state())
    if not wants_fragment():
        return go_back(f"{_panel(conversation_id)}#switch-{document_id}")
    enabled_count, total_count = switches.count_enabled(services, user, conversation_id)
    values = {
        "conversation_id": conversation_id,
        "enabled_count": enabled_count,
        "total_count": total_count,
        "folder_id": parse_id(request.form.get("folder")),
        "text": request.form.get("q", ""),
    }
    row = ("fragments/selection/_row.html", {"switch": switch, **values})
    return fragments(row, *_found_folders(conversation_id, values), *_counts(values))


def rows_switches(document_ids: Sequence[UUID]) -> dict[UUID, DocumentSwitch]:
    """Return the user's default switches of these documents."""
    return switches.find_switches(*context.caller(), document_ids)


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(selection_cause=cause)


def switches_values(conversation_id: UUID) -> dict[str, Any]:
    """Return the template values for the switches of a conversation."""
    services, user = context.caller()
    cursor = request.args.get("cursor") or None
    folder_id = parse_id(request.values.get("folder"))
    # In an opened folder, the field may still contain the search from before.
    text = "" if folder_id else request.values.get("q", "").strip()
    # Further pages of a long list have no folders at the top.
    folder_switches = (
        ()
        if cursor
        else switches.list_folder_switches(
            services, user, conversation_id, parent_id=folder_id, contains=text, with_counts=True
        )
    )
    page = switches.list_switches(
        services,
        user,
        conversation_id,
        contains=text,
        cursor=cursor,
        limit=SWITCHES_PER_STEP,
        in_panel=True,
        folder_id=folder_id,
    )
    return {
        "folder_id": folder_id,
        "opened": folders.get_folder(services, user, folder_id) if folder_id else None,
        "folder_switches": folder_switches[:MAX_FOLDERS_SHOWN],
        "has_more_folders": len(folder_switches) > MAX_FOLDERS_SHOWN,
        "conversation": conversations.get(services, user, conversation_id),
        "conversation_id": conversation_id,
        "page": page,
        "text": text,
        "enabled_count": page.enabled_count,
        "total_count": page.total_count,
    }


def _panel(conversation_id: UUID) -> str:
    """Return the address of the switches, with the folder or filter of the form."""
    folder_id, text = parse_id(request.form.get("folder")), request.form.get("q")
    return url_for("selection.show", conversation_id=conversation_id, folder=folder_id, q=text)


def _found_folders(
    conversation_id: UUID, values: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the folders of a filtered list: the changed document may be in one of them."""
    if not values["text"]:
        return
    found = switches.list_folder_switches(
        *context.caller(), conversation_id, contains=values["text"], with_counts=True
    )
    for switch in found[:MAX_FOLDERS_SHOWN]:
        more = {"switch": switch, "out_of_band": True}
        yield "fragments/selection/_folder_row.html", {**values, **more}


def _counts(values: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the counts of enabled documents, for all places on the page that show them."""
    return [("fragments/selection/_counts.html", values)]


def _read_state() -> bool | None:
    """Read the state from the form. Raises MalformedRequest."""
    name = request.form.get("state", "")
    if name not in STATES:
        raise MalformedRequest("unknown switch state")
    return STATES[name]
