"""Uploads: one file per request with its own row, or several in a form without JavaScript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.domain.documents import DocumentSummary, Visibility
from portal.errors import N_, InvalidInput, PortalError, StorageFull, Unavailable, is_disk_full
from portal.http import context
from portal.http.incoming import form_target, form_targets, form_visibility, one_by_one, store_once
from portal.http.messages import error_message
from portal.limits.bodies import accepts_files
from portal.services.documents import library
from portal.services.documents.intake import uploads
from portal.services.documents.intake.uploads import UploadReceipt
from portal.web.blueprint import PageBlueprint
from portal.web.documents.listing import ACTIVE, ListQuery, page_values, progress_line, row, total
from portal.web.layout import (
    Answer,
    fragments,
    remember,
    removal_fragment,
    see_other,
    wants_fragment,
)

# More files are listed on the page: a toast is stored in a cookie, which browsers drop over 4 kB.
MAX_NOTES = 5
_MAX_NOTED_CHARACTERS = 60
# Errors that all following files would get too.
_FOR_ALL = (Unavailable, StorageFull)

blueprint = PageBlueprint("uploads", __name__)

Fragment = tuple[str, dict[str, Any]]


class NoFileChosen(InvalidInput):
    code = "no_file_chosen"
    message = N_("No file selected. Choose one or more files to upload.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one file of a form: a document, new or existing, or an error."""

    file_name: str
    receipt: UploadReceipt | None = None
    error: PortalError | None = None

    @property
    def is_new(self) -> bool:
        return self.receipt is not None and not self.receipt.is_duplicate

    @property
    def reason(self) -> str:
        """Return why the file was refused, in the reader's language; empty if it was not."""
        return error_message(self.error) if self.error else ""


@blueprint.post("/documents")
@accepts_files
@one_by_one
def upload() -> Answer:
    sent = request.files.getlist("file")
    files = [uploads.Upload(file.stream, file.filename) for file in sent if file.filename]
    if wants_fragment():
        return _rows(files)
    if not files:
        error = NoFileChosen()
        return _page(upload_error=error_message(error)), error.status
    outcomes = _outcomes(files, form_targets(len(files)))
    if len(outcomes) <= MAX_NOTES and all(outcome.is_new for outcome in outcomes):
        _remember(outcomes)
        return see_other(url_for("documents.index", folder=request.form.get("folder_id") or None))
    errors = [outcome.error for outcome in outcomes if outcome.error]
    page = _page(upload_outcomes=outcomes, refused_count=len(errors))
    return page, (errors[0].status if len(errors) == len(outcomes) else 200)


def _page(**values: Any) -> str:
    # The form's own fields, such as the domain, must not filter the list.
    query = ListQuery(folder_id=form_target().folder_id)
    # Keep the fields: a second attempt must not be shared with more users than the first.
    values["sent"] = request.form
    return render_template("pages/documents/documents.html", **page_values(query, **values))


def _rows(files: list[uploads.Upload]) -> str:
    """Return the documents' rows for the list, which replace existing ones.

    With an `Idempotency-Key`, a repeated request gets the same answer and stores nothing twice.
    Raises NotFound if the document has been deleted in between.
    """
    if not files:
        raise NoFileChosen
    visibility, domain, targets = form_visibility(), _read_domain(), form_targets(len(files))

    def store() -> dict[str, Any]:
        outcomes = _outcomes(files, targets)
        for outcome in outcomes:
            if outcome.error:
                raise outcome.error
        receipts = [outcome.receipt for outcome in outcomes if outcome.receipt]
        return {
            "documents": [
                {"id": str(receipt.document.id), "is_duplicate": receipt.is_duplicate}
                for receipt in receipts
            ]
        }

    paths = [one.path for one in targets]
    values = ("page", domain, visibility.value, str(targets[0].folder_id), *paths)
    answer = store_once(store, files, *values)
    names = [uploads.clean_file_name(file.file_name) for file in files]
    parts = [
        part
        for one, name in zip(answer["documents"], names, strict=True)
        for part in _show_stored(one, name, visibility)
    ]
    return fragments(*parts, total())


def _show_stored(stored: dict[str, Any], file_name: str, requested: Visibility) -> list[Fragment]:
    document = library.get_summary(*context.caller(), UUID(stored["id"]))
    note = _describe_known(document, file_name, requested) if stored["is_duplicate"] else ""
    active = [progress_line()] if document.status in ACTIVE else []
    return [removal_fragment(f"document-{document.id}"), row(document, note=note), *active]


def _describe_known(document: DocumentSummary, file_name: str, requested: Visibility) -> str:
    if requested is Visibility.PRIVATE and document.visibility is Visibility.SHARED:
        if document.is_for_members:
            return str(gettext("Already uploaded, and visible to the members of its folder."))
        return str(gettext("Already uploaded, and visible to everyone."))
    if file_name != document.file_name:
        words = gettext(
            "“%(title)s” has the same content. This file was not added again.", title=document.title
        )
        return str(words)
    return str(gettext("Already uploaded."))


def _outcomes(files: list[uploads.Upload], targets: list[uploads.UploadTarget]) -> list[Outcome]:
    """Store each file separately: one that fails does not stop the others.

    If the disk is full or the database is unavailable, the remaining files are not tried. Raises
    InvalidInput for fields that all files share.
    """
    visibility, domain = form_visibility(), _read_domain()
    outcomes: list[Outcome] = []
    for file, target in zip(files, targets, strict=True):
        file_name = uploads.clean_file_name(file.file_name)
        before = outcomes[-1].error if outcomes else None
        outcomes.append(
            Outcome(file_name, error=before)
            if isinstance(before, _FOR_ALL)
            else _outcome(file, file_name, visibility, domain, target)
        )
    return outcomes


def _outcome(
    file: uploads.Upload,
    file_name: str,
    visibility: Visibility,
    domain: str | None,
    target: uploads.UploadTarget,
) -> Outcome:
    try:
        receipt = uploads.store_upload(
            *context.caller(),
            stream=file.stream,
            file_name=file_name,
            domain=domain,
            visibility=visibility,
            target=target,
        )
    except PortalError as error:
        return Outcome(file_name, error=error)
    except OSError as error:
        if not is_disk_full(error):
            raise
        return Outcome(file_name, error=StorageFull())
    return Outcome(file_name, receipt)


def _read_domain() -> str | None:
    return request.form.get("domain", "").strip() or None


def _remember(outcomes: list[Outcome]) -> None:
    titles = [_shorten(outcome.receipt.document.title) for outcome in outcomes if outcome.receipt]
    joined = str(gettext(", ")).join(titles)
    remember(gettext("Uploaded: %(titles)s", titles=joined), kind="success")


def _shorten(title: str) -> str:
    if len(title) <= _MAX_NOTED_CHARACTERS:
        return title
    return title[: _MAX_NOTED_CHARACTERS - 1] + "…"
