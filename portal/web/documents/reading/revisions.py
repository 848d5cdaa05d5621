"""Versions of a document: upload, list, text, and changes."""

from __future__ import annotations

from math import ceil
from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.errors import N_, PortalError, TextsTooLong
from portal.http import context
from portal.http.messages import error_message
from portal.limits.bodies import accepts_files
from portal.services.documents import library
from portal.services.documents.intake.uploads import Upload
from portal.services.documents.versions import revisions
from portal.services.documents.versions.revisions import VersionOutcome, VersionReceipt
from portal.text.likeness.differences import characters_changed
from portal.text.likeness.stretches import PART_CHARACTERS, part_of
from portal.web.blueprint import PageBlueprint
from portal.web.documents.reading.document import page_with_error
from portal.web.documents.reading.focus import positive
from portal.web.documents.reading.originals import file_answer
from portal.web.documents.uploads import NoFileChosen
from portal.web.layout import Answer, see_other

_LISTED = 50
_SAID = {
    VersionOutcome.QUEUED: N_("New version queued."),
    VersionOutcome.UNDER_WAY: N_("This file is already being read."),
    VersionOutcome.PRESENT: N_("This file is already the current version."),
    VersionOutcome.TAKEN_BACK: N_("This file is already the current version. The pending version "
                         "was withdrawn."),
}  # fmt: skip

_PREFIX = "/documents/<uuid:document_id>/revisions"

blueprint = PageBlueprint("revisions", __name__, _PREFIX)


@blueprint.get("")
def show_all(document_id: UUID) -> Answer:
    services, user = context.caller()
    document = library.get_summary(services, user, document_id)
    page = revisions.list_revisions(
        services, user, document_id, cursor=request.args.get("cursor") or None, limit=_LISTED
    )
    return render_template("pages/documents/revisions.html", document=document, revision_page=page)


@blueprint.post("")
@accepts_files
def upload(document_id: UUID) -> Answer:
    services, user = context.caller()
    library.get_summary(services, user, document_id)
    file = request.files.get("file")
    try:
        if file is None or not file.filename:
            raise NoFileChosen
        sent = Upload(file.stream, file.filename)
        receipt = revisions.add_version(services, user, document_id, sent)
    except PortalError as error:
        if error.status >= 500 or error.status in {403, 404}:  # noqa: PLR2004 - not of the file
            raise
        return page_with_error(document_id, error, "version_error")
    return _taken(document_id, receipt)


@blueprint.post("/<int:number>/restore")
def restore(document_id: UUID, number: int) -> Answer:
    """Make an earlier version the newest one."""
    return _taken(document_id, revisions.restore(*context.caller(), document_id, number))


def _taken(document_id: UUID, receipt: VersionReceipt) -> Answer:
    return see_other(
        url_for("reading.show", document_id=document_id),
        gettext(_SAID[receipt.taken]),
        kind="info" if receipt.is_duplicate else "success",
    )


@blueprint.post("/discard")
def discard(document_id: UUID) -> Answer:
    """Discard a version that failed or was cancelled."""
    revisions.discard_unread(*context.caller(), document_id)
    return see_other(
        url_for("reading.show", document_id=document_id),
        gettext("The pending version was discarded."),
    )


@blueprint.get("/<int:number>")
def show(document_id: UUID, number: int) -> Answer:
    """Show the text of a version, or with `against` its differences from another one."""
    against = positive(request.args.get("against"), otherwise=0)
    return _differences(document_id, number, against) if against else _text(document_id, number)


@blueprint.get("/<int:number>/file")
def original_file(document_id: UUID, number: int) -> Answer:
    """Send the file of a version; browsers show it inline if that is safe."""
    services, user = context.caller()
    revision = revisions.get_revision(services, user, document_id, number)
    stored = revisions.open_file(services, user, document_id, number)
    return file_answer(stored, encoding=revision.encoding)


def _text(document_id: UUID, number: int) -> str:
    services, user = context.caller()
    revision = revisions.get_revision(services, user, document_id, number)
    part_count = max(1, ceil(revision.character_count / PART_CHARACTERS))
    part = min(positive(request.args.get("part")), part_count)
    text = revisions.read_part(services, user, document_id, number, part)
    values = {"revision": revision, "text": text, "part": part, "part_count": part_count}
    return render_template("pages/documents/revision.html", **_head(document_id), **values)


def _differences(document_id: UUID, number: int, against: int) -> Answer:
    services, user = context.caller()
    try:
        compared = revisions.compare(services, user, document_id, number, against=against)
    except TextsTooLong as error:
        pair = [
            revisions.get_revision(services, user, document_id, one) for one in (number, against)
        ]
        values: dict[str, Any] = {"revision": pair[0], "against": pair[1], "shown": None}
        values["too_long"] = error_message(error)
        return render_template("pages/documents/differences.html", **_head(document_id), **values)
    added, removed = characters_changed(compared.pieces)
    values = {
        "revision": compared.revision,
        "against": compared.against,
        "added": added,
        "removed": removed,
        "shown": part_of(compared.pieces, positive(request.args.get("part"))),
    }
    return render_template("pages/documents/differences.html", **_head(document_id), **values)


def _head(document_id: UUID) -> dict[str, Any]:
    """Return the template values of the document and the versions to choose from."""
    services, user = context.caller()
    return {
        "document": library.get_summary(services, user, document_id),
        "choices": revisions.list_revisions(services, user, document_id, limit=_LISTED).items,
    }
