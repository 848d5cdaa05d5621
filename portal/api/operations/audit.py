"""Serve the audit log, for programs that watch for attacks."""

from __future__ import annotations

import re
from typing import Annotated, Any
from uuid import UUID

from pydantic import AwareDatetime, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, PageQuery, ResponseModel
from portal.domain.people.audit import AuditEntry, AuditEvent, AuditFilter, Source, SubjectKind
from portal.http import context
from portal.services.operations.reports import audit_log

_TAG = {"name": "Administration", "description": "What administrators see and do."}

blueprint = ApiBlueprint("audit_api", __name__, url_prefix="/api/admin/audit", tag=_TAG)


_DATE_AND_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d")


def _refuse_number(value: Any) -> Any:
    """Refuse numbers, which pydantic would parse as seconds since 1970."""
    if isinstance(value, str) and not _DATE_AND_TIME.match(value):
        raise PydanticCustomError("datetime_parsing", "takes a date and time")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_refuse_number)]


class AuditQuery(PageQuery):
    event: AuditEvent | None = Field(None, description="only this event")
    user: CleanText | None = Field(
        None, max_length=100, description="only entries by or about the user of this name"
    )
    q: CleanText | None = Field(
        None,
        max_length=100,
        description="only entries with these words in a name, title, address, browser or "
        "request id",
    )
    since: Moment | None = Field(None, description="from this time on")
    until: Moment | None = Field(None, description="before this time")
    limit: int = Field(50, ge=1, le=200, description="entries per page")


class AuditActor(ResponseModel):
    id: UUID
    name: str = Field(description="name at the time", examples=["ada"])


class AuditSubject(ResponseModel):
    kind: SubjectKind
    id: str | None = Field(examples=["7d8e5f0c-3b53-5c0e-9a57-6f2f7a0c1b42"])
    title: str | None = Field(description="name or title at the time")


class AuditEntryModel(ResponseModel):
    id: UUID
    created_at: AwareDatetime
    event: str = Field(description="one of the events that `event` takes", examples=["sign_in"])
    source: Source
    actor: AuditActor | None = Field(
        description="null for the operator, a worker, or a request without a sign-in"
    )
    subject: AuditSubject | None
    address: str | None = Field(description="client address of the request", examples=["192.0.2.7"])
    user_agent: str | None = Field(
        description="browser or program of the request", examples=["curl/8.5.0"]
    )
    request_id: str | None = Field(description="its `X-Request-ID`", examples=["c1f0a4…"])
    name_digest: str | None = Field(
        description="of a failed sign-in: a keyed digest of the name that was typed",
        examples=[None],
    )
    details: dict[str, Any] = Field(examples=[{"kind": "browser"}])


class AuditListResponse(ResponseModel):
    entries: list[AuditEntryModel]
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


@blueprint.get("")
@context.for_administrators
def list_audit_log(query_data: AuditQuery) -> AuditListResponse:
    """List the audit log.

    Shows who did what to accounts, tokens, documents and settings, when and from where; latest
    first. Administrators only.
    """
    chosen = AuditFilter(
        event=query_data.event,
        user=query_data.user or None,
        text=query_data.q or None,
        since=query_data.since,
        until=query_data.until,
    )
    page = audit_log.list_entries(
        *context.caller(), chosen, cursor=query_data.cursor, limit=query_data.limit
    )
    return AuditListResponse(
        entries=[_model(entry) for entry in page.items], next_cursor=page.next_cursor
    )


def _model(entry: AuditEntry) -> AuditEntryModel:
    actor = {"id": entry.actor_id, "name": entry.actor_name}
    subject = {
        "kind": entry.subject_kind,
        "id": entry.subject_id,
        "title": entry.subject_title,
    }
    return AuditEntryModel.of(
        entry,
        actor=actor if entry.actor_id else None,
        subject=subject if entry.subject_kind else None,
    )
