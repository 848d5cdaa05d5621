"""Notifications: the bell's count, toasts on any page, and the list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from flask import Flask, render_template, request, url_for
from flask_babel import gettext, ngettext
from werkzeug.wrappers import Response

from portal.domain.documents import Failure
from portal.domain.documents.notifications import (
    MAX_NAMED,
    OF_ACCOUNT,
    FailedUpdate,
    Notification,
    NotificationKind,
    NotificationState,
)
from portal.domain.people.devices import Device
from portal.errors import NotFound, PortalError
from portal.http import context
from portal.http.messages import failure_message
from portal.services.documents import notifications
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, fragments, see_other, toast, viewer, wants_fragment
from portal.web.presenters import device_words
from portal.web.shown_rows import append_rows, rows_limit, shown_values

PAGE_SIZE = 50
_IN_MENU = 5
# Per kind, so that toasts never cover the page.
_MAX_NOTES_AT_ONCE = 2
# Pages poll more often while a document of the user is being processed.
_SOON_S, _LATER_S = 3, 30
_BELL, _COUNT = "fragments/notifications/_bell.html", "fragments/notifications/_count.html"

blueprint = PageBlueprint("notifications", __name__, "/notifications")


@dataclass(frozen=True, slots=True)
class BellState:
    """The count on the bell, and after how many seconds the page polls again. `known` encodes both
    as one string; `is_due` is true if there are toasts to show."""

    unread: int
    every_s: int
    is_due: bool

    @classmethod
    def of(cls, state: NotificationState) -> BellState:
        return cls(state.unread_rows, _SOON_S if state.in_work else _LATER_S, state.is_due)

    @property
    def known(self) -> str:
        return f"{self.unread}.{self.every_s}"


@blueprint.get("")
def index() -> Answer:
    in_menu = wants_fragment("notification-menu")
    batch_id = request.args.get("batch", type=UUID)
    if batch_id is not None:
        batch = notifications.list_batch(*context.caller(), batch_id)
        if not batch:
            raise NotFound
        return render_template("pages/people/notification_batch.html", batch=batch)
    page = notifications.list_batches(
        *context.caller(),
        cursor=request.args.get("cursor") or None,
        limit=_IN_MENU if in_menu else rows_limit(PAGE_SIZE),
    )
    if in_menu:
        return render_template("fragments/notifications/_menu.html", page=page)
    values = {"page": page, **shown_values(len(page.items))}
    if wants_fragment("load-more"):
        rows = render_template("fragments/notifications/_rows.html", **values)
        return append_rows(rows, len(page.items))
    return render_template("pages/people/notifications.html", **values)


@blueprint.get("/state")
def show_state() -> Answer:
    """Return the bell, or 204 if the page already shows this state."""
    found = _bell()
    if not found.is_due and request.args.get("known") == found.known:
        return Response(status=204)
    return fragments((_BELL, {"bell": found}), (_COUNT, {"bell": found, "out_of_band": True}))


@blueprint.post("/deliver")
def deliver() -> Answer:
    """Return toasts that were not shown yet; each is returned to one page only."""
    if not wants_fragment():
        return see_other(url_for("notifications.index"))
    taken = notifications.take(*context.caller())
    notes = [note for kind in OF_ACCOUNT for note in _account_notes(kind, taken)]
    notes += _batch_notes([item for item in taken if item.kind not in OF_ACCOUNT])
    return fragments(*notes) if notes else Response(status=204)


@blueprint.post("/<uuid:notification_id>/open")
def open_one(notification_id: UUID) -> Answer:
    """Redirect to the subject of a notification, and mark its whole batch as read."""
    batch = notifications.open_notification(*context.caller(), notification_id)
    if len(batch) > 1:
        return see_other(url_for("notifications.index", batch=batch[0].batch_id))
    (found,) = batch
    if found.kind is NotificationKind.NEW_DEVICE:
        return see_other(url_for("sessions.show"))
    if found.kind is NotificationKind.RECOVERY_CODE:
        return see_other(url_for("second_factors.show"))
    if found.kind is NotificationKind.SHARED:
        return see_other(url_for("sharing.read", conversation_id=found.details["conversation"]))
    return see_other(url_for("reading.show", document_id=found.document_id))


@blueprint.post("/read")
def mark_read() -> Answer:
    notifications.mark_read(*context.caller(), until=_read_until())
    return see_other(url_for("notifications.index"), gettext("All notifications marked as read."))


def _read_until() -> datetime | None:
    """Return the time of the newest notification on the page; None if the form has no valid
    time."""
    try:
        return datetime.fromisoformat(request.form.get("until", "")).astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: before the year 1 in UTC.
        return None


def new_bell() -> list[tuple[str, dict[str, Any]]]:
    """Return a bell that fetches new toasts, for fragments that show the end of a job."""
    values = {"bell": _bell(), "out_of_band": True}
    return [(_BELL, values), (_COUNT, values)]


def _bell() -> BellState:
    return BellState.of(notifications.state(*context.caller()))


def _batch_notes(ended: list[Notification]) -> list[tuple[str, dict[str, Any]]]:
    """Return a toast for each document, or one for a large batch, which also counts the documents
    of the batch that were shown before."""
    notes: list[tuple[str, dict[str, Any]]] = []
    for batch_id in dict.fromkeys(item.batch_id for item in ended):
        batch = notifications.list_batch(*context.caller(), batch_id)
        unseen = [item for item in ended if item.batch_id == batch_id]
        if len(batch) <= MAX_NAMED:
            notes += map(_note, unseen)
            continue
        failed = sum(item.kind is NotificationKind.FAILED for item in batch)
        words = gettext(
            "Your uploads: %(counts)s.", counts=batch_counts(len(batch) - failed, failed)
        )
        goes_to = url_for("notifications.open_one", notification_id=unseen[-1].id)
        kind = "error" if failed else "success"
        notes.append(toast(words, kind=kind, opens=goes_to, key=f"batch-{batch_id}"))
    return notes


def batch_counts(ready: int, failed: int) -> str:
    """Return in words how many documents of a batch became ready and how many failed."""
    counts = (
        ngettext("%(num)s ready", "%(num)s ready", ready) if ready else "",
        ngettext("%(num)s failed", "%(num)s failed", failed) if failed else "",
    )
    return str(gettext(", ").join(filter(None, counts)))


def _account_notes(
    kind: NotificationKind, taken: tuple[Notification, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """Return a toast for each notification of this kind, or one for all if there are many."""
    ended = [item for item in taken if item.kind is kind]
    if len(ended) <= _MAX_NOTES_AT_ONCE:
        return [_note(item) for item in ended]
    if kind is NotificationKind.NEW_DEVICE:
        words = ngettext(
            "%(num)s new device signed in to your account.",
            "%(num)s new devices signed in to your account.",
            len(ended),
        )
    else:
        words = ngettext(
            "%(num)s recovery code was used to sign in to your account.",
            "%(num)s recovery codes were used to sign in to your account.",
            len(ended),
        )
    where = {"link": url_for("notifications.index"), "link_words": gettext("All notifications")}
    return [toast(words, kind="error", **where)]


def _note(item: Notification) -> tuple[str, dict[str, Any]]:
    goes_to = url_for("notifications.open_one", notification_id=item.id)
    if item.kind is NotificationKind.FAILED:
        reason = failure_message(item.failure or Failure(PortalError.code))
        words = gettext("%(what)s %(reason)s", what=notification_words(item), reason=reason)
        return toast(words, kind="error", opens=goes_to)
    kind = "error" if item.kind in OF_ACCOUNT else "success"
    return toast(notification_words(item), kind=kind, opens=goes_to)


def notification_words(item: Notification) -> str:
    """Return the text of a notification."""
    title = item.title
    if item.kind is NotificationKind.NEW_DEVICE:
        device = Device(item.details.get("program"), item.details.get("platform"))
        words = gettext(
            "New sign-in to your account: %(device)s, %(address)s. If this wasn't you, end the "
            "session and change your password.",
            device=device_words(device),
            address=item.details.get("address") or gettext("unknown address"),
        )
    elif item.kind is NotificationKind.RECOVERY_CODE:
        words = gettext(
            "A recovery code was used to sign in to your account. Codes left: %(left)s. If this "
            "wasn’t you, change your password and make new codes.",
            left=item.details.get("left"),
        )
    elif item.kind is NotificationKind.SHARED:
        words = gettext(
            "%(name)s shared the conversation “%(title)s” with you.",
            name=item.details.get("owner"),
            title=title or gettext("New conversation"),
        )
    elif item.kind is NotificationKind.READY:
        words = gettext("“%(title)s” is ready and can be searched.", title=title)
    elif item.beside is FailedUpdate.VERSION:
        words = gettext(
            "The new version of “%(title)s” could not be read. The previous text is "
            "still searchable.",
            title=title,
        )
    elif item.beside is FailedUpdate.REREAD:
        words = gettext(
            "Re-reading “%(title)s” failed. The previous text is still searchable.", title=title
        )
    else:
        words = gettext("“%(title)s” failed.", title=title)
    return str(words)


def _bell_of_page() -> BellState | None:
    """Return the bell of a page; None if no user is signed in or the database is down."""
    try:
        return _bell() if viewer() is not None else None
    except PortalError:
        return None


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(
        bell_of_page=_bell_of_page, notification_words=notification_words, batch_counts=batch_counts
    )
