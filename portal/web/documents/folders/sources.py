"""The page of a folder's source, for users who may change the folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.domain.documents.sources import (
    MAX_ADDRESS_CHARACTERS,
    MAX_LISTED,
    Change,
    FolderSource,
    SyncRun,
)
from portal.errors import N_, InvalidInput, PortalError, existing
from portal.http import context
from portal.http.messages import failure_message
from portal.services.documents import folders
from portal.services.documents.sources import folder_sources
from portal.services.documents.sources.registry import KINDS
from portal.settings import Settings
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, render_form, see_other, wants_fragment

# How many files of each kind are listed for an earlier run.
_MAX_EARLIER_LISTED = 20
INTERVALS = {
    15: N_("Every 15 minutes"),
    60: N_("Every hour"),
    24 * 60: N_("Every day"),
    7 * 24 * 60: N_("Every week"),
}
CHANGE_WORDS = {
    Change.REFUSED: N_("Refused"),
    Change.ADDED: N_("Added"),
    Change.CHANGED: N_("Changed"),
    Change.REMOVED: N_("Removed"),
}


@dataclass(frozen=True, slots=True)
class ListedKind:
    """The files that a run added, changed, removed or refused: the kind of change in words, the
    count, and the first paths, each with the reason if it was refused."""

    change: Change
    words: str
    count: int
    files: list[tuple[str, str]]


class Choice(NamedTuple):
    """A kind of source in the form, in the reader's language."""

    name: str
    label: str
    hint: str


blueprint = PageBlueprint("folder_sources", __name__, "/folders/<uuid:folder_id>/source")


@blueprint.get("")
def show(folder_id: UUID) -> Answer:
    """Show the source. Polls for the fragment get 204 while a run is due, so that lists that the
    user has unfolded stay open."""
    if wants_fragment("source-state"):
        source = existing(folder_sources.find_source(*context.caller(), folder_id))
        if _is_due(source):
            return Response(status=204)
        return render_template("fragments/folders/_source_state.html", **_state(folder_id, source))
    return _page(folder_id)


@blueprint.post("")
def tie(folder_id: UUID) -> Answer:
    """Tie the folder to a source, or change it."""
    every = request.form.get("every_minutes", "")
    if not every.isdecimal() or len(every) > len(str(max(INTERVALS))):
        raise InvalidInput("choose how often to sync")
    try:
        folder_sources.set_source(
            *context.caller(),
            folder_id,
            kind=request.form.get("kind", ""),
            address=request.form.get("address", "")[:MAX_ADDRESS_CHARACTERS],
            every_minutes=int(every),
        )
    except InvalidInput as error:
        return _page(folder_id, error)
    return _done(folder_id, gettext("Saved. Syncing starts within a minute."))


@blueprint.post("/run")
def run(folder_id: UUID) -> Answer:
    folder_sources.request_run(*context.caller(), folder_id)
    return _done(folder_id, gettext("Syncing starts within a minute."))


@blueprint.post("/remove")
def untie(folder_id: UUID) -> Answer:
    folder_sources.remove_source(*context.caller(), folder_id)
    return _done(folder_id, gettext("The folder no longer has a source."))


def _done(folder_id: UUID, message: str) -> Answer:
    return see_other(url_for("folder_sources.show", folder_id=folder_id), message)


def _listed(run: SyncRun, max_files: int = MAX_LISTED) -> list[ListedKind]:
    """Return the changes of a run by kind, refusals first: they may need action."""
    found = []
    for change, words in CHANGE_WORDS.items():
        files = [
            (one.path, failure_message(one.failure) if one.failure else "")
            for one in run.listed
            if one.change is change
        ]
        if files:
            count = getattr(run, change)
            found.append(ListedKind(change, gettext(words), count, files[:max_files]))
    return found


def _state(folder_id: UUID, source: FolderSource) -> dict[str, Any]:
    """Return the template values of the source's state: the last run and the earlier ones."""
    run = source.last_run
    past = folder_sources.list_runs(*context.caller(), folder_id)
    return {
        "folder_id": folder_id,
        "source": source,
        "is_due": _is_due(source),
        "run": run,
        "failure": failure_message(run.failure) if run and run.failure else "",
        "listed": _listed(run) if run else [],
        "earlier": [
            (one, _listed(one.run, _MAX_EARLIER_LISTED))
            for one in past
            if one.ran_at != source.last_run_at
        ],
    }


def _is_due(source: FolderSource) -> bool:
    return source.due_at <= datetime.now(UTC)


def _choices(settings: Settings) -> list[Choice]:
    """Return the kinds of sources that the operator allows."""
    return [
        Choice(kind.name, gettext(kind.label), gettext(kind.hint, list=allowed))
        for kind in KINDS.values()
        if (allowed := kind.allowed(settings))
    ]


def _page(folder_id: UUID, error: PortalError | None = None) -> Answer:
    services, user = context.caller()
    source = folder_sources.find_source(services, user, folder_id)
    choices = _choices(services.settings)
    return render_form(
        "pages/documents/folder_source.html",
        error,
        folder=folders.get_folder(services, user, folder_id).folder,
        **(_state(folder_id, source) if source else {"source": None}),
        choices=choices,
        kind=request.form.get(
            "kind", source.kind if source else choices[0].name if choices else ""
        ),
        intervals=INTERVALS,
        address=request.form.get("address", source.address if source else ""),
        every=source.every_minutes if source else 60,
        max_address=MAX_ADDRESS_CHARACTERS,
    )
