"""Files coming in: several in one form, or one a request with progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apiflask import APIBlueprint
from flask import redirect, render_template, request, url_for
from flask_babel import gettext, ngettext
from werkzeug.datastructures import FileStorage
from werkzeug.wrappers import Response

from portal import context
from portal.domain.documents import DocumentSummary, Visibility
from portal.errors import N_, InvalidInput, PortalError
from portal.phrases import error_message
from portal.services import uploads
from portal.web.documents import list_values, row, total
from portal.web.layout import fragments, remember, toast, wants_fragment

MOST_NOTICES = 5

blueprint = APIBlueprint("uploads", __name__, enable_openapi=False)

Answer = Response | str | tuple[str, int]


class NoFileChosen(InvalidInput):
    code = "no_file_chosen"
    message = N_("No file was chosen. Choose one or more and upload again.")


@dataclass(slots=True)
class Outcome:
    """What became of the files of one form."""

    added: list[DocumentSummary] = field(default_factory=list)
    known: list[DocumentSummary] = field(default_factory=list)
    errors: list[PortalError] = field(default_factory=list)


@blueprint.post("/documents")
def upload() -> Answer:
    outcome = _store([file for file in request.files.getlist("file") if file.filename])
    if wants_fragment():
        if outcome.errors:
            raise outcome.errors[0]
        return _rows(outcome)
    if outcome.errors and not outcome.added:
        errors = [error_message(error) for error in outcome.errors]
        values = list_values(upload_errors=errors)
        return render_template("pages/documents.html", **values), outcome.errors[0].status
    _flash(outcome)
    return redirect(url_for("documents.index"), code=303)


def _store(files: list[FileStorage]) -> Outcome:
    """Store each file by itself: one that fails does not keep the others out."""
    outcome = Outcome()
    if not files:
        outcome.errors.append(NoFileChosen())
    visibility = request.form.get("visibility", Visibility.SHARED)
    for file in files:
        try:
            receipt = uploads.store_upload(
                context.services(),
                context.person(),
                stream=file.stream,
                file_name=file.filename or "",
                domain=request.form.get("domain", "").strip() or None,
                visibility=Visibility(visibility)
                if visibility in set(Visibility)
                else Visibility.SHARED,
            )
        except PortalError as error:
            outcome.errors.append(error)
            continue
        (outcome.known if receipt.is_duplicate else outcome.added).append(receipt.document)
    return outcome


def _rows(outcome: Outcome) -> str:
    parts: list[tuple[str, dict[str, Any]]] = [row(document) for document in outcome.added]
    parts += [
        toast(_known_message(document), link=url_for("reading.show", document_id=document.id))
        for document in outcome.known
    ]
    if outcome.added:
        progress = {"is_active": True, "out_of_band": True}
        parts += [("fragments/documents/_progress.html", progress), total()]
    return fragments(*parts)


def _flash(outcome: Outcome) -> None:
    if outcome.added:
        titles = gettext("Uploaded: %(titles)s", titles=_join(outcome.added))
        remember(titles, kind="success")
    for document in outcome.known[:MOST_NOTICES]:
        link = url_for("reading.show", document_id=document.id)
        remember(_known_message(document), kind="info", link=link)
    # All of it travels in a cookie, which browsers drop when it grows over 4 kB.
    for error in outcome.errors[:MOST_NOTICES]:
        remember(error_message(error), kind="error")
    more = len(outcome.errors) - MOST_NOTICES
    if more > 0:
        remember(
            ngettext(
                "%(num)s more file was not taken.", "%(num)s more files were not taken.", more
            ),
            kind="error",
        )


def _known_message(document: DocumentSummary) -> str:
    return str(gettext("This file is already here as “%(title)s”.", title=document.title))


def _join(documents: list[DocumentSummary]) -> str:
    return str(gettext(", ")).join(document.title for document in documents)
