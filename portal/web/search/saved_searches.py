"""Saved searches: forms on the search page that save, rename and delete them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.errors import InvalidInput, NameTaken
from portal.http import context
from portal.http.messages import error_message
from portal.services.search import saved
from portal.web.blueprint import PageBlueprint
from portal.web.layout import go_back, see_other
from portal.web.search.query import SearchQuery

blueprint = PageBlueprint("saved_searches", __name__, "/search/saved")


@blueprint.post("")
def save() -> Response:
    query = SearchQuery.read(request.form, may_tune=False)
    arguments: dict[str, Any] = {name: str(value) for name, value in query.arguments(n="").items()}
    back = url_for("search.show", **arguments)
    try:
        saved.save(*context.caller(), request.form.get("name", ""), arguments)
    except (InvalidInput, NameTaken) as error:
        return see_other(back, error_message(error), kind="error")
    return see_other(back, gettext("Search saved."))


@blueprint.post("/<uuid:search_id>/rename")
def rename(search_id: UUID) -> Response:
    try:
        saved.rename(*context.caller(), search_id, request.form.get("name", ""))
    except (InvalidInput, NameTaken) as error:
        return go_back(url_for("search.show"), error_message(error), kind="error")
    return go_back(url_for("search.show"), gettext("Saved."))


@blueprint.post("/<uuid:search_id>/delete")
def delete(search_id: UUID) -> Response:
    saved.delete(*context.caller(), search_id)
    return go_back(url_for("search.show"), gettext("Search deleted."))
