"""The scope of a question in its form: chips above the field, and the search for more.

Scripts complete names after "@"; without scripts the form has a search field with a button.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import request

from portal.domain.documents.selection import AskScope
from portal.errors import NotFound
from portal.http import context
from portal.services.answers import conversations


def read() -> AskScope:
    """Return the scope in the request's `about` values, without the dropped one. Raises
    NotFound."""
    chosen: dict[str, dict[str, None]] = {"document": {}, "folder": {}, "tag": {}}
    dropped = request.form.get("drop")
    for value in request.values.getlist("about"):
        kind, _, name = value.partition(":")
        if kind not in chosen or not name:
            raise NotFound
        if value != dropped:
            chosen[kind][name] = None
    try:
        documents, folders = (tuple(map(UUID, chosen[kind])) for kind in ("document", "folder"))
    except ValueError as error:
        raise NotFound from error
    return AskScope(documents, folders, tuple(chosen["tag"]))


def is_changed() -> bool:
    """Return whether the form was sent to change the chips, not to ask."""
    return "drop" in request.form or "find_about" in request.form


def values() -> dict[str, Any]:
    """Return the template values of the form; `found` is None if nothing was searched for."""
    services, user = context.caller()
    find = request.values.get("find", "").strip()
    found = None
    if "find_about" in request.form:
        found = conversations.find_for_scope(services, user, find)
    return {
        "about": conversations.name_scope(services, user, read()),
        "find": find,
        "found": found,
    }
