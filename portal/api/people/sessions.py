"""Serve a user's sessions."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apiflask import APIBlueprint
from pydantic import Field

from portal.api.people.auth import TAG
from portal.api.schemas import ResponseModel, error_responses
from portal.domain.people import SessionKind, SignInMethod
from portal.http import context
from portal.services.people import sessions

blueprint = APIBlueprint("sessions_api", __name__, url_prefix="/api/account/sessions", tag=TAG)


class DeviceModel(ResponseModel):
    program: str | None = Field(examples=["Firefox"])
    platform: str | None = Field(examples=["Linux"])


class SessionModel(ResponseModel):
    id: UUID
    kind: SessionKind
    device: DeviceModel = Field(description="as reported by the client")
    address: str | None = Field(description="of its last use", examples=["192.0.2.1"])
    created_at: datetime
    last_used_at: datetime = Field(description="to the minute")
    expires_at: datetime
    methods: list[SignInMethod] = Field(description="how the user signed in")
    current: bool = Field(description="the session of this request")


class SessionList(ResponseModel):
    sessions: list[SessionModel] = Field(description="live ones, last used first")


@blueprint.get("")
@blueprint.output(SessionList)
@blueprint.doc(summary="List your sessions", description="Sign-ins of browsers and programs.")
def list_sessions() -> SessionList:
    listed = sessions.list_sessions(context.services(), context.require_signed_in())
    return SessionList(sessions=[SessionModel.of(one, current=one.is_current) for one in listed])


@blueprint.delete("")
@blueprint.output({}, status_code=204)
@blueprint.doc(
    summary="End all other sessions",
    description="At once, in every process. Personal access tokens stay. Requires a token from "
    "signing in.",
    responses=error_responses(403),
)
def end_others() -> str:
    context.session_user()
    sessions.end_other_sessions(context.services(), context.require_signed_in())
    return ""


@blueprint.delete("/<uuid:session_id>")
@blueprint.output({}, status_code=204)
@blueprint.doc(
    summary="End a session",
    description="At once, in every process. Requires a token from signing in.",
    responses=error_responses(403, 404),
)
def end_session(session_id: UUID) -> str:
    sessions.end_session(context.services(), context.session_user(), session_id)
    return ""
