"""Serve shared conversations to their owners and readers."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from portal.api.answers.conversation_schemas import MessageModel, message_model
from portal.api.answers.conversations import TAG
from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.conversations import Reader
from portal.http import context
from portal.services.answers import sharing

blueprint = ApiBlueprint("sharing_api", __name__, url_prefix="/api", tag=TAG)


class ReaderBody(RequestModel):
    name: CleanText = Field(
        min_length=1, max_length=100, description="name of the user", examples=["zoe"]
    )


class ReaderModel(ResponseModel):
    id: UUID
    name: str = Field(examples=["mei"])


class ReaderListResponse(ResponseModel):
    readers: list[ReaderModel]


class SharedConversationModel(ResponseModel):
    id: UUID
    title: str
    owner_name: str = Field(examples=["ada"])


class SharedMessageModel(MessageModel):
    withheld: bool = Field(
        description="true if the answer is left out, with its sources, because it rests on "
        "documents you may not see"
    )


class SharedConversationDetailModel(SharedConversationModel):
    messages: list[SharedMessageModel]


class SharedConversationListResponse(ResponseModel):
    conversations: list[SharedConversationModel]


@blueprint.get("/conversations/<uuid:conversation_id>/readers")
def list_readers(conversation_id: UUID) -> ReaderListResponse:
    """List the users with whom you share a conversation."""
    return _readers(sharing.list_readers(*context.caller(), conversation_id))


@blueprint.post("/conversations/<uuid:conversation_id>/readers", errors=(404,))
def add_reader(conversation_id: UUID, json_data: ReaderBody) -> ReaderListResponse:
    """Share a conversation with a user.

    The user is notified and reads it with their own rights: sources that they may not see are left
    out, and so are answers that rest on them. 404 also for an unknown user.
    """
    sharing.add_reader(*context.caller(), conversation_id, json_data.name)
    return _readers(sharing.list_readers(*context.caller(), conversation_id))


@blueprint.delete("/conversations/<uuid:conversation_id>/readers/<uuid:user_id>")
def remove_reader(conversation_id: UUID, user_id: UUID) -> None:
    """Stop sharing a conversation with a user."""
    sharing.remove_reader(*context.caller(), conversation_id, user_id)


@blueprint.get("/shared-conversations")
def list_shared() -> SharedConversationListResponse:
    """List conversations that others share with you."""
    found = [
        SharedConversationModel.of(conversation)
        for conversation in sharing.list_shared(*context.caller())
    ]
    return SharedConversationListResponse(conversations=found)


@blueprint.get("/shared-conversations/<uuid:conversation_id>")
def get_shared(conversation_id: UUID) -> SharedConversationDetailModel:
    """Get a conversation that another user shares with you."""
    shared, messages = sharing.read(*context.caller(), conversation_id)
    models = [
        SharedMessageModel(**dict(message_model(shown.message)), withheld=shown.is_withheld)
        for shown in messages
    ]
    return SharedConversationDetailModel.of(shared, messages=models)


@blueprint.delete("/shared-conversations/<uuid:conversation_id>")
def leave(conversation_id: UUID) -> None:
    """Remove a conversation from your list of shared ones."""
    sharing.leave(*context.caller(), conversation_id)


def _readers(readers: tuple[Reader, ...]) -> ReaderListResponse:
    return ReaderListResponse(readers=[ReaderModel.of(reader) for reader in readers])
