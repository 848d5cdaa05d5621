"""Bulk changes to selected documents: confirm, apply, undo."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext, ngettext

from portal.domain.documents import Visibility
from portal.domain.documents.bulk import (
    MAX_BULK_IDS,
    BulkAction,
    BulkCounts,
    BulkResult,
    BulkTarget,
)
from portal.domain.documents.folder_members import AccessChange
from portal.errors import N_, Conflict, Forbidden, InvalidInput, UploadedAgain, verbatim
from portal.http import context
from portal.http.messages import error_message
from portal.services.documents import bulk, folders, library
from portal.services.documents.folders import members as folder_members
from portal.text.titles import MAX_DOMAIN_CHARACTERS, MAX_TAG_CHARACTERS
from portal.web.blueprint import PageBlueprint
from portal.web.documents.folders.forms import parse_id
from portal.web.documents.listing import list_query, list_values
from portal.web.i18n import sentence_gap
from portal.web.layout import Answer, fragments, go_back, see_other, toast, wants_fragment
from portal.web.security import next_path

blueprint = PageBlueprint("bulk", __name__, "/documents/bulk")

# A toast is stored in a cookie until the next page, and browsers drop cookies over 4 kB.
_MAX_TITLES_NOTED = 5
_MAX_NOTED_CHARACTERS = 40
_OTHER_REASON = N_("Reading again is not possible.")
# Why a document was skipped, by the code of the error.
_REASONS = {
    Conflict.code: N_("Reading is already under way."),
    Forbidden.code: N_("Belongs to another user."),
    InvalidInput.code: N_("There is no room for more tags."),
    UploadedAgain.code: N_("The same file was uploaded again."),
}
_SWITCHES: dict[str, bool | None] = {"on": True, "off": False, "inherit": None}
_FILTERS = ("q", "status", "type", "domain", "owner", "visibility", "folder", "tag")
# Actions that need a value, and the title of the form that asks for it.
_QUESTIONS = {
    BulkAction.MOVE: N_("Move to a folder"),
    BulkAction.ADD_TAG: N_("Add or remove a tag"),
    BulkAction.DOMAIN: N_("Change the domain"),
    BulkAction.VISIBILITY: N_("Change visibility"),
}
# Actions with a text field, and the action whose form has the field.
_TYPED = {
    BulkAction.ADD_TAG: BulkAction.ADD_TAG,
    BulkAction.REMOVE_TAG: BulkAction.ADD_TAG,
    BulkAction.DOMAIN: BulkAction.DOMAIN,
}


@blueprint.post("/ask")
def ask() -> Answer:
    """Ask for the value of an action, in the dialog or on its own page; for a move to the chosen
    folder, show who gains and loses access."""
    action, target, chosen = _action(), _target(), request.form.get("value", "")
    if action is BulkAction.MOVE and chosen:
        return _ask(action, target, _access_change(target, _value(action)), chosen=chosen)
    return _ask(action, target, chosen=chosen)


def ask_to_move(document_id: UUID, folder_id: UUID | None, access_change: AccessChange) -> Answer:
    """Show who gains and loses access to a document by a move, and ask whether to move it."""
    after = url_for("reading.show", document_id=document_id)
    chosen = str(folder_id or "none")
    return _ask(
        BulkAction.MOVE, BulkTarget((document_id,)), access_change, chosen=chosen, after=after
    )


def _ask(
    action: BulkAction,
    target: BulkTarget,
    access_change: AccessChange | None = None,
    *,
    chosen: str,
    after: str | None = None,
    error: str | None = None,
) -> str:
    """Render the question, with `access_change` also who gains and loses access by the move.
    `after` is the page to return to."""
    if action not in _QUESTIONS and action is not BulkAction.DELETE:
        raise InvalidInput("unknown action")
    services, user = context.caller()
    counts = bulk.count(services, user, target, action)
    values: dict[str, Any] = {
        "action": action,
        "question": _question(action, counts),
        "count": counts.total_count,
        "editable_count": counts.editable_count,
        "ids": target.ids,
        "query": list_query(),
        "shown": request.form.get("shown", ""),
        "paths": folders.list_paths_to_add(services, user) if action is BulkAction.MOVE else [],
        "tags": library.list_tags(services, user) if action is BulkAction.ADD_TAG else [],
        "domains": library.list_domains(services, user) if action is BulkAction.DOMAIN else [],
        "visibilities": tuple(Visibility),
        "access_change": access_change,
        "chosen": chosen,
        "after": after or next_path(),
        "error": error,
        "max_tag_characters": MAX_TAG_CHARACTERS,
        "max_domain_characters": MAX_DOMAIN_CHARACTERS,
    }
    if wants_fragment():
        return render_template("fragments/documents/_bulk_question.html", **values)
    return render_template("pages/documents/bulk_question.html", **values)


def _question(action: BulkAction, counts: BulkCounts) -> str:
    if action is BulkAction.DELETE:
        count = counts.editable_count or counts.total_count
        return str(ngettext("Delete %(num)s document?", "Delete %(num)s documents?", count))
    return str(gettext(_QUESTIONS[action]))


def _access_change(target: BulkTarget, folder_id: UUID | None) -> AccessChange | None:
    """Return who gains and loses access by a move; None if no user does."""
    access_change = folder_members.preview_move(*context.caller(), target, folder_id)
    return access_change if access_change.matters else None


@blueprint.post("")
def apply() -> Answer:
    action = _action()
    target, value = _target(), _value(action)
    if action is BulkAction.MOVE:
        access_change = _access_change(target, value)
        if access_change and request.form.get("seen") != access_change.digest:
            return _ask(action, target, access_change, chosen=request.form["value"])
    try:
        done = bulk.apply(*context.caller(), target, action, value)
    except InvalidInput as error:
        if action not in _TYPED:
            raise
        chosen, words = request.form.get("value", ""), error_message(error)
        return _ask(_TYPED[action], target, chosen=chosen, error=words), error.status
    address = next_path() or url_for(
        "documents.index", **list_query().arguments(), shown=request.form.get("shown") or None
    )
    more = {"undo": url_for("bulk.undo", change_id=done.change_id)} if done.change_id else {}
    reasons = {one.reason for one in done.skipped}
    if done.skipped_count > _MAX_TITLES_NOTED or len(reasons) > 1:
        # Too much for a toast.
        report_id = bulk.add_report(*context.caller(), action, done)
        return see_other(url_for("bulk.show_report", report_id=report_id, next=address))
    kind = "error" if done.skipped_count or done.missing_count else "success"
    return see_other(address, _words(action, done), kind=kind, **more)


@blueprint.get("/<uuid:report_id>")
def show_report(report_id: UUID) -> str:
    """List the documents that a change skipped, with the reasons."""
    report = bulk.get_report(*context.caller(), report_id)
    done = report.result
    return render_template(
        "pages/documents/bulk_report.html",
        message=_changed_words(report.action, done.changed_count) if done.changed_count else "",
        done=done,
        skipped=[(one, _reason_words(one.reason)) for one in done.skipped],
        missing=_missing_words(done.missing_count) if done.missing_count else "",
        # Documents in the trash have no page.
        is_linked=report.action is not BulkAction.RESTORE,
        back=next_path() or url_for("documents.index"),
    )


@blueprint.post("/<uuid:change_id>/undo")
def undo(change_id: UUID) -> Answer:
    changed_count = bulk.undo(*context.caller(), change_id)
    message = ngettext(
        "The change to %(num)s document was undone.",
        "The change to %(num)s documents was undone.",
        changed_count,
    )
    if not changed_count:
        message = gettext(
            "Nothing was undone: the documents were changed since, or you may no longer change "
            "them."
        )
    if wants_fragment("document-results"):
        values = list_values()
        kind = "success" if changed_count else "info"
        return fragments(("fragments/documents/_results.html", values), toast(message, kind=kind))
    return go_back(url_for("documents.index"), message)


def _action() -> BulkAction:
    """Return the action of the pressed button; a switch adds its state, as in `switch:on`."""
    action = request.form.get("action", "").partition(":")[0]
    if action not in set(BulkAction):
        raise InvalidInput("unknown action")
    return BulkAction(action)


def _target() -> BulkTarget:
    """Return the selection: all documents that match, or the ticked ones. Raises InvalidInput."""
    if "matching" in request.form:
        query = list_query()
        # The list ignores filters that it cannot parse; here that would change more documents.
        unread = {name for name in _FILTERS if request.form.get(name)} - query.arguments().keys()
        if unread:
            raise InvalidInput(
                "unknown filter: %(names)s", names=verbatim(", ".join(sorted(unread)))
            )
        return BulkTarget(None, query.filters)
    try:
        ids = tuple(UUID(value) for value in request.form.getlist("document"))
    except ValueError as error:
        raise InvalidInput("a document's id is malformed") from error
    if not 1 <= len(ids) <= MAX_BULK_IDS:
        raise InvalidInput("select 1 to %(max)s documents, or all that match", max=MAX_BULK_IDS)
    return BulkTarget(ids)


def _value(action: BulkAction) -> Any:
    if action is BulkAction.MOVE:
        place = request.form.get("value")
        if not place:
            raise InvalidInput("choose a folder")
        return None if place == "none" else parse_id(place)
    if action is BulkAction.SWITCH:
        state = request.form.get("action", "").partition(":")[2]
        if state not in _SWITCHES:
            raise InvalidInput("unknown switch state")
        return _SWITCHES[state]
    return request.form.get("value", "").strip()


def _words(action: BulkAction, done: BulkResult) -> str:
    """Return the message about changed, skipped and missing documents."""
    is_whole = not (done.skipped_count or done.missing_count)
    parts = []
    if done.changed_count or is_whole:
        parts.append(_changed_words(action, done.changed_count))
    if done.skipped_count:
        parts.append(_skipped_words(done))
    if done.missing_count:
        parts.append(_missing_words(done.missing_count))
    return sentence_gap().join(parts)


def _missing_words(count: int) -> str:
    return str(ngettext("%(num)s is no longer there.", "%(num)s are no longer there.", count))


def _reason_words(code: str) -> str:
    return str(gettext(_REASONS.get(code, _OTHER_REASON)))


def _changed_words(action: BulkAction, count: int) -> str:
    if action is BulkAction.DELETE:
        words = ngettext(
            "%(num)s document is in the trash.", "%(num)s documents are in the trash.", count
        )
    elif action is BulkAction.RESTORE:
        words = ngettext(
            "%(num)s document was restored.", "%(num)s documents were restored.", count
        )
    elif action is BulkAction.MOVE and count:
        words = ngettext("%(num)s document was moved.", "%(num)s documents were moved.", count)
    elif action is BulkAction.READ_AGAIN:
        words = ngettext(
            "%(num)s document is being read again.",
            "%(num)s documents are being read again.",
            count,
        )
    elif not count:
        words = gettext("No changes needed: the documents are like this already.")
    else:
        words = ngettext("%(num)s document changed.", "%(num)s documents changed.", count)
    return str(words)


def _skipped_words(done: BulkResult) -> str:
    """Return which documents were skipped and why; all have the same reason."""
    count, reason = done.skipped_count, done.skipped[0].reason
    titles = str(gettext(", ")).join(one.title[:_MAX_NOTED_CHARACTERS] for one in done.skipped)
    if reason == Forbidden.code:
        return str(
            ngettext(
                "%(num)s was skipped because it belongs to another user: %(titles)s.",
                "%(num)s were skipped because they belong to other users: %(titles)s.",
                count,
                titles=titles,
            )
        )
    words = ngettext(
        "%(num)s could not be changed: %(titles)s.",
        "%(num)s could not be changed: %(titles)s.",
        count,
        titles=titles,
    )
    return f"{words}{sentence_gap()}{_reason_words(reason)}"
