"""Serve notifications about the user's documents and account, and about shared conversations."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.knowledge import TAG
from portal.api.documents.schemas.jobs import FailureModel, failure_model
from portal.api.schemas import PageQuery, RequestModel, ResponseModel
from portal.domain.documents.notifications import (
    MAX_UNREAD_COUNTED,
    FailedUpdate,
    Notification,
    NotificationKind,
)
from portal.http import context
from portal.http.messages import translated
from portal.services.documents import notifications

_MAX_IDS = 1000

blueprint = ApiBlueprint("notifications_api", __name__, url_prefix="/api/notifications", tag=TAG)


class NotificationQuery(PageQuery):
    unread: bool = Field(False, description="true: only unread notifications")
    limit: int = Field(50, ge=1, le=200, description="notifications per page")


class NewDeviceModel(ResponseModel):
    program: str | None = Field(examples=["Firefox"])
    platform: str | None = Field(examples=["Linux"])
    address: str | None = Field(examples=["192.0.2.1"])


class NotificationModel(ResponseModel):
    id: UUID
    kind: NotificationKind = Field(
        description="`ready`: the document can be searched. `failed`: see `error` and "
        "`beside`. `new_device`: see `device`. `recovery_code`: a recovery code"
        " was used to sign in. `shared`: see `conversation_id`",
        examples=[NotificationKind.READY],
    )
    batch_id: UUID = Field(
        description="shared by documents that were processed together; pages show them as "
        "one notification"
    )
    document_id: UUID | None = Field(description="null unless it is about a document")
    job_id: UUID | None = Field(description="null unless it is about a document")
    title: str | None = Field(
        description="current title of the document or conversation; null if it is about none",
        examples=["Leave policy"],
    )
    device: NewDeviceModel | None = Field(
        description="for `new_device`: the client that signed in, and its address", examples=[None]
    )
    conversation_id: UUID | None = Field(
        description="for `shared`: the conversation that another user shares", examples=[None]
    )
    beside: FailedUpdate | None = Field(
        description="for a failure that left the previous text searchable: whether a new "
        "`version` or a `reread` failed; null if there is no text",
        examples=[None],
    )
    error: FailureModel | None = Field(description="why it failed", examples=[None])
    warnings: list[str] = Field(description="parts that could not be read", examples=[[]])
    created_at: AwareDatetime
    read_at: AwareDatetime | None = Field(description="null if unread", examples=[None])


class NotificationListResponse(ResponseModel):
    notifications: list[NotificationModel]
    unread_count: int = Field(
        description=f"over all notifications; {MAX_UNREAD_COUNTED} means that many or more",
        examples=[3],
    )
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class ReadBody(RequestModel):
    ids: list[UUID] = Field(
        default_factory=list, max_length=_MAX_IDS, description="ids to mark as read"
    )
    all: bool = Field(False, description="true: mark all as read and ignore `ids`", examples=[True])


class ReadResponse(ResponseModel):
    unread_count: int = Field(
        description=f"what is left; {MAX_UNREAD_COUNTED} means that many or more", examples=[0]
    )


@blueprint.get("")
def list_notifications(query_data: NotificationQuery) -> NotificationListResponse:
    """List your notifications.

    Newest first: documents that became ready or failed, sign-ins from new devices or by a recovery
    code, and conversations shared with you. Listing does not mark them as shown.
    """
    services, user = context.caller()
    page = notifications.list_notifications(
        services,
        user,
        unread_only=query_data.unread,
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    unread_count = notifications.state(services, user).unread
    listed = [_model(item) for item in page.items]
    return NotificationListResponse.of(page, notifications=listed, unread_count=unread_count)


@blueprint.post("/read")
def mark_read(json_data: ReadBody) -> ReadResponse:
    """Mark notifications as read.

    Marks those with these ids, or all. Ids of other users' notifications are ignored.
    """
    services, user = context.caller()
    notifications.mark_read(services, user, None if json_data.all else json_data.ids)
    return ReadResponse(unread_count=notifications.state(services, user).unread)


def _model(item: Notification) -> NotificationModel:
    return NotificationModel.of(
        item,
        device=item.details if item.kind is NotificationKind.NEW_DEVICE else None,
        conversation_id=item.details.get("conversation"),
        error=failure_model(item.failure),
        warnings=[translated(warning) for warning in item.warnings],
    )
