"""Serve a user's sessions."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.people.auth import TAG
from portal.api.schemas import ResponseModel
from portal.domain.people import SessionKind, SignInMethod
from portal.http import context
from portal.services.people import sessions

blueprint = ApiBlueprint("sessions_api", __name__, url_prefix="/api/account/sessions", tag=TAG)


class DeviceModel(ResponseModel):
    program: str | None = Field(examples=["Firefox"])
    platform: str | None = Field(examples=["Linux"])


class SessionModel(ResponseModel):
    id: UUID
    kind: SessionKind
    device: DeviceModel = Field(description="as reported by the client")
    address: str | None = Field(description="address of the last use", examples=["192.0.2.1"])
    created_at: AwareDatetime
    last_used_at: AwareDatetime = Field(description="to the minute")
    expires_at: AwareDatetime
    methods: list[SignInMethod] = Field(description="how the user signed in")
    current: bool = Field(description="the session of this request")


class SessionList(ResponseModel):
    sessions: list[SessionModel] = Field(description="active sessions, last used first")


@blueprint.get("")
def list_sessions() -> SessionList:
    """List your sessions.

    Includes sign-ins of browsers and of programs.
    """
    listed = sessions.list_sessions(context.services(), context.require_signed_in())
    return SessionList(
        sessions=[SessionModel.of(session, current=session.is_current) for session in listed]
    )


@blueprint.delete("", errors=(403,))
def end_others() -> None:
    """End all other sessions.

    They end at once, in every process. Personal access tokens are kept. Requires a token from
    signing in.
    """
    context.session_user()
    sessions.end_other_sessions(context.services(), context.require_signed_in())


@blueprint.delete("/<uuid:session_id>", errors=(403, 404))
def end_session(session_id: UUID) -> None:
    """End a session.

    It ends at once, in every process. Requires a token from signing in.
    """
    sessions.end_session(context.services(), context.session_user(), session_id)
