"""The preview of a result beside the results: its page or its chunks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, request, url_for

from portal.http import context
from portal.services.documents import library
from portal.web.blueprint import PageBlueprint
from portal.web.documents.reading.document import text_values
from portal.web.documents.reading.focus import find_focus
from portal.web.documents.reading.page_views import pages_view, wants_pages
from portal.web.layout import Answer, see_other, wants_fragment

_CHUNKS = 3

blueprint = PageBlueprint("previews", __name__, "/search/preview")


@blueprint.get("/<uuid:document_id>")
def show(document_id: UUID) -> Answer:
    """Show the chunk of a result in its document. 404 for users who may not see it."""
    services, user = context.caller()
    detail = library.get_document(services, user, document_id)
    wanted: dict[str, Any] = {name: request.args.get(name) for name in ("chunk", "q")}
    if not wants_fragment():
        return see_other(url_for("reading.show", document_id=document_id, **wanted))

    def address(**values: Any) -> str:
        return url_for("reading.show", document_id=document_id, **wanted | values)

    focus = find_focus(detail)
    values: dict[str, Any] = {"document": detail.summary, "focus": focus, "address": address()}
    values |= {"view": None, "why_text": None}
    if wants_pages(detail, focus):
        values["view"], values["why_text"] = pages_view(detail, focus, address, count=1)
    if values["view"] is None:
        start = 0
        if focus.chunk is not None:
            start = library.count_chunks_before(services, user, document_id, focus.chunk)
        values |= text_values(detail, focus, start, start + _CHUNKS)
    return render_template("fragments/search/_preview.html", **values)
