"""The audit log for administrators: filtered, paginated, and as a CSV file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain

from flask import Response, render_template, request, stream_with_context
from flask_babel import to_utc

from portal.domain.people.audit import AuditEvent, AuditFilter
from portal.errors import N_, InvalidInput
from portal.http import context
from portal.services.operations.reports import audit_log
from portal.web.blueprint import PageBlueprint

PAGE_SIZE = 50
# Without it, spreadsheets assume a local legacy encoding instead of UTF-8.
_BYTE_ORDER_MARK = "\ufeff"
_MAX_NAME_CHARACTERS = 100

EVENT_WORDS = {
    AuditEvent.SIGN_IN: N_("Signed in"),
    AuditEvent.SIGN_IN_FAILED: N_("Sign-in failed"),
    AuditEvent.SIGN_OUT: N_("Signed out"),
    AuditEvent.SESSION_ENDED: N_("Session ended"),
    AuditEvent.NEW_DEVICE: N_("New device"),
    AuditEvent.TOKEN_CREATED: N_("Token created"),
    AuditEvent.TOKEN_REVOKED: N_("Token revoked"),
    AuditEvent.INVITATION_CREATED: N_("Invitation created"),
    AuditEvent.INVITATION_USED: N_("Invitation used"),
    AuditEvent.INVITATION_WITHDRAWN: N_("Invitation withdrawn"),
    AuditEvent.USER_CREATED: N_("User created"),
    AuditEvent.USER_DISABLED: N_("User disabled"),
    AuditEvent.USER_ENABLED: N_("User enabled"),
    AuditEvent.USER_DELETED: N_("User deleted"),
    AuditEvent.ROLE_CHANGED: N_("Role changed"),
    AuditEvent.PASSWORD_CHANGED: N_("Password changed"),
    AuditEvent.PASSWORD_RESET: N_("Password reset"),
    AuditEvent.SECOND_FACTOR_ADDED: N_("Second factor added"),
    AuditEvent.SECOND_FACTOR_REMOVED: N_("Second factor removed"),
    AuditEvent.RECOVERY_CODE_USED: N_("Recovery code used"),
    AuditEvent.OIDC_LINKED: N_("External account linked"),
    AuditEvent.OIDC_UNLINKED: N_("External account unlinked"),
    AuditEvent.VISIBILITY_CHANGED: N_("Visibility changed"),
    AuditEvent.GROUP_CREATED: N_("Group created"),
    AuditEvent.GROUP_CHANGED: N_("Group members changed"),
    AuditEvent.GROUP_DELETED: N_("Group deleted"),
    AuditEvent.FOLDER_MEMBER_CHANGED: N_("Folder members changed"),
    AuditEvent.FOLDER_SOURCE_CHANGED: N_("Folder source changed"),
    AuditEvent.CONVERSATION_SHARED: N_("Conversation shared"),
    AuditEvent.CONVERSATION_UNSHARED: N_("Conversation no longer shared"),
    AuditEvent.PRIVATE_DOCUMENT_OPENED: N_("Private document opened"),
    AuditEvent.PRIVATE_DOCUMENT_FOUND: N_("Private document found by search"),
    AuditEvent.DOCUMENT_PURGED: N_("Document permanently deleted"),
    AuditEvent.UPLOAD_INFECTED: N_("Infected upload refused"),
    AuditEvent.SETTINGS_CHANGED: N_("Setting changed"),
    AuditEvent.MODEL_SWITCHED: N_("Embedding model switched"),
    AuditEvent.MODEL_DROPPED: N_("Embedding model deleted"),
    AuditEvent.BACKUP_TAKEN: N_("Backup taken"),
    AuditEvent.BACKUP_RESTORED: N_("Backup restored"),
    AuditEvent.BACKUP_REHEARSED: N_("Restore rehearsed"),
}
SOURCE_WORDS = {"web": N_("Web"), "command_line": N_("Command line"), "worker": N_("Worker")}
# Labels of subject kinds and details; unknown ones are shown as they are stored.
DETAIL_WORDS = {
    "user": N_("User"),
    "session": N_("Session"),
    "token": N_("Token"),
    "invitation": N_("Invitation"),
    "document": N_("Document"),
    "folder": N_("Folder"),
    "group": N_("Group"),
    "conversation": N_("Conversation"),
    "setting": N_("Setting"),
    "model": N_("Embedding model"),
    "backup": N_("Backup"),
    "added": N_("Added"),
    "address": N_("Address"),
    "after": N_("After"),
    "before": N_("Before"),
    "by": N_("Created by"),
    "is_admin": N_("Administrator"),
    "kind": N_("Kind"),
    "member": N_("Member"),
    "methods": N_("Sign-in methods"),
    "platform": N_("Operating system"),
    "program": N_("Browser"),
    "purpose": N_("Purpose"),
    "reason": N_("Reason"),
    "removed": N_("Removed"),
    "role": N_("Role"),
    "scope": N_("Scope"),
}

blueprint = PageBlueprint("admin_audit", __name__, "/admin/audit", context.for_administrators)


@blueprint.get("")
def show() -> str:
    page = audit_log.list_entries(
        *context.caller(), _filter(), cursor=request.args.get("cursor") or None, limit=PAGE_SIZE
    )
    retention_days = context.services().settings.audit.retention_days
    return render_template(
        "pages/operations/audit.html",
        page=page,
        chosen=_as_sent(),
        event_words=EVENT_WORDS,
        source_words=SOURCE_WORDS,
        detail_words=DETAIL_WORDS,
        is_filtered=any(_as_sent().values()),
        retention_days=retention_days,
    )


@blueprint.get("/export.csv")
def export() -> Response:
    lines = audit_log.export_csv(*context.caller(), _filter())
    response = Response(
        stream_with_context(chain([_BYTE_ORDER_MARK], lines)),
        content_type="text/csv; charset=utf-8",
    )
    response.headers["Content-Disposition"] = 'attachment; filename="audit-log.csv"'
    return response


def _as_sent() -> dict[str, str | None]:
    """Return the filter as submitted, for the form and for links; None for empty fields."""
    names = ("event", "user", "q", "since", "until")
    return {name: request.args.get(name, "").strip() or None for name in names}


def _filter() -> AuditFilter:
    """Parse the submitted filter. Raises InvalidInput."""
    sent = _as_sent()
    event, user, words = sent["event"], sent["user"], sent["q"]
    if event is not None and event not in set(AuditEvent):
        raise InvalidInput("there is no such event")
    until = _day(sent["until"])
    return AuditFilter(
        event=AuditEvent(event) if event else None,
        user=user[:_MAX_NAME_CHARACTERS] if user else None,
        text=words[:_MAX_NAME_CHARACTERS] if words else None,
        since=_day(sent["since"]),
        # Include the day itself.
        until=until + timedelta(days=1) if until else None,
    )


def _day(text: str | None) -> datetime | None:
    """Return when a day begins in the reader's time zone, in which the page shows its times."""
    if text is None:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007
    except ValueError as error:
        raise InvalidInput("a date must be written like 2026-01-31") from error
    # A day is added to this date and another zone may be a day off, which the first and the last
    # valid dates do not allow.
    day = min(max(day, datetime(1, 1, 2)), datetime(9999, 12, 29))  # noqa: DTZ001
    begins: datetime = to_utc(day).replace(tzinfo=UTC)
    return begins
