"""The trash: restore documents or purge them."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.http import context
from portal.services.documents import library, trash
from portal.web.blueprint import PageBlueprint
from portal.web.documents.listing import list_values
from portal.web.layout import (
    Answer,
    fragments,
    go_back,
    removal_fragment,
    see_other,
    toast,
    wants_fragment,
)
from portal.web.shown_rows import append_rows, rows_limit, shown_values

PAGE_SIZE = 50

blueprint = PageBlueprint("trash", __name__, "/trash")


@blueprint.get("")
def show() -> Answer:
    services = context.services()
    page = library.list_trash(
        services,
        context.user(),
        cursor=request.args.get("cursor") or None,
        limit=rows_limit(PAGE_SIZE),
    )
    purges = {
        one.id: trash.purged_at(services, one.deleted_at) for one in page.items if one.deleted_at
    }
    values = {"page": page, "purges": purges, **shown_values(len(page.items))}
    if wants_fragment("load-more"):
        rows = render_template("fragments/trash/_rows.html", **values)
        return append_rows(rows, len(page.items))
    trash_days = services.settings.trash_days
    return render_template("pages/documents/trash.html", trash_days=trash_days, **values)


@blueprint.post("/<uuid:document_id>/restore")
def restore(document_id: UUID) -> Answer:
    services, user = context.caller()
    library.restore_document(services, user, document_id)
    title = library.get_summary(services, user, document_id).title
    message = gettext("“%(title)s” was restored.", title=title)
    if wants_fragment("document-results"):
        values = list_values()
        return fragments(
            ("fragments/documents/_results.html", values),
            ("fragments/documents/_progress.html", {**values, "out_of_band": True}),
            toast(message, kind="success"),
        )
    if wants_fragment():
        link = url_for("reading.show", document_id=document_id)
        note = toast(message, kind="success", link=link)
        return fragments(removal_fragment(f"trash-{document_id}"), note)
    return go_back(url_for("documents.index"), message)


@blueprint.get("/<uuid:document_id>/purge")
def confirm_purge(document_id: UUID) -> Answer:
    document = library.get_summary(*context.caller(), document_id, deleted=True)
    if wants_fragment():
        return render_template("fragments/trash/_confirm_purge.html", document=document)
    return render_template("pages/documents/confirm_purge.html", document=document)


@blueprint.post("/<uuid:document_id>/purge")
def purge(document_id: UUID) -> Answer:
    document = library.get_summary(*context.caller(), document_id, deleted=True)
    library.purge_document(*context.caller(), document_id)
    message = gettext("“%(title)s” was permanently deleted.", title=document.title)
    if wants_fragment():
        return fragments(removal_fragment(f"trash-{document_id}"), toast(message, kind="success"))
    return see_other(url_for("trash.show"), message)
