"""Switch documents and folders on and off, for a user and in a conversation."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field, StrictBool

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import TEXT_CURSOR, CleanText, RequestModel, ResponseModel, cursor_field
from portal.domain.documents.selection import SelectionSource
from portal.http import context
from portal.services.documents import switches

MAX_SWITCHES = 1000

_TAG = {
    "name": "Selection",
    "description": "Which documents are searched for a user, and in one conversation.",
}

blueprint = ApiBlueprint("selection_api", __name__, url_prefix="/api", tag=_TAG)


class SwitchQuery(RequestModel):
    q: CleanText = Field("", max_length=200, description="only titles that contain this")
    cursor: str | None = cursor_field(TEXT_CURSOR, max_length=2000)
    limit: int = Field(MAX_SWITCHES, ge=1, le=MAX_SWITCHES, description="documents per page")


class SwitchBody(RequestModel):
    enabled: StrictBool


class SwitchModel(ResponseModel):
    document_id: UUID
    title: str
    enabled: bool = Field(description="the effective state")
    source: SelectionSource = Field(description="the level that decides it")
    user_default: bool | None = Field(description="the user's own switch; null if not set")


class OverrideModel(SwitchModel):
    override: bool | None = Field(description="the conversation's switch; null if not set")


class FolderSwitchQuery(RequestModel):
    parent_id: UUID | None = Field(None, description="default: the top-level folders")
    q: CleanText = Field(
        "", max_length=200, description="list all folders whose names contain this instead"
    )


class DecidingFolderModel(ResponseModel):
    folder_id: UUID
    name: str | None = Field(description="null if you may not see it")


class FolderSwitchModel(ResponseModel):
    folder_id: UUID
    name: str
    has_folders: bool
    enabled: bool = Field(description="the effective state")
    source: SelectionSource = Field(description="the level that decides it")
    decided_by: DecidingFolderModel | None = Field(
        description="the parent folder whose switch decides; null if its own does, or none",
        examples=[None],
    )
    user_default: bool | None = Field(description="the user's own switch; null if not set")


class FolderOverrideModel(FolderSwitchModel):
    override: bool | None = Field(description="the conversation's switch; null if not set")


class FolderDefaultList(ResponseModel):
    folders: list[FolderSwitchModel]


class FolderOverrideList(ResponseModel):
    folders: list[FolderOverrideModel]


class _SwitchList(ResponseModel):
    enabled_count: int = Field(description="counted over all documents visible to the user")
    total_count: int
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class DefaultList(_SwitchList):
    documents: list[SwitchModel]


class OverrideList(_SwitchList):
    documents: list[OverrideModel]


class AllBody(RequestModel):
    enabled: StrictBool | None = Field(description="null resets to the user's own defaults")


@blueprint.get("/user/document-defaults")
def list_defaults(query_data: SwitchQuery) -> DefaultList:
    """List your document switches.

    Lists all documents visible to you; those without a switch are on.
    """
    page = switches.list_switches(
        *context.caller(),
        None,
        contains=query_data.q.strip(),
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    return DefaultList.of(page, documents=page.items)


@blueprint.put("/user/document-defaults/<uuid:document_id>")
def set_default(document_id: UUID, json_data: SwitchBody) -> SwitchModel:
    """Switch a document on or off for all conversations."""
    switch = switches.set_switch(*context.caller(), None, document_id, json_data.enabled)
    return SwitchModel.of(switch)


@blueprint.delete("/user/document-defaults/<uuid:document_id>")
def forget_default(document_id: UUID) -> None:
    """Reset a document to the system default."""
    switches.set_switch(*context.caller(), None, document_id, None)


@blueprint.get("/conversations/<uuid:conversation_id>/document-overrides")
def list_overrides(conversation_id: UUID, query_data: SwitchQuery) -> OverrideList:
    """List the document switches of a conversation."""
    page = switches.list_switches(
        *context.caller(),
        conversation_id,
        contains=query_data.q.strip(),
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    return OverrideList.of(page, documents=page.items)


@blueprint.put("/conversations/<uuid:conversation_id>/document-overrides")
def set_all_overrides(conversation_id: UUID, json_data: AllBody) -> None:
    """Switch all documents on or off in a conversation."""
    switches.set_all_overrides(*context.caller(), conversation_id, json_data.enabled)


@blueprint.put("/conversations/<uuid:conversation_id>/document-overrides/<uuid:document_id>")
def set_override(conversation_id: UUID, document_id: UUID, json_data: SwitchBody) -> OverrideModel:
    """Switch a document on or off in a conversation."""
    switch = switches.set_switch(*context.caller(), conversation_id, document_id, json_data.enabled)
    return OverrideModel.of(switch)


@blueprint.delete("/conversations/<uuid:conversation_id>/document-overrides/<uuid:document_id>")
def forget_override(conversation_id: UUID, document_id: UUID) -> None:
    """Reset a document to your default."""
    switches.set_switch(*context.caller(), conversation_id, document_id, None)


@blueprint.get("/user/folder-defaults", errors=(404,))
def list_folder_defaults(query_data: FolderSwitchQuery) -> FolderDefaultList:
    """List your folder switches.

    Folders without a switch follow their parent; top-level folders are on.
    """
    found = switches.list_folder_switches(
        *context.caller(), parent_id=query_data.parent_id, contains=query_data.q.strip()
    )
    return FolderDefaultList(folders=[FolderSwitchModel.of(folder) for folder in found])


@blueprint.put("/user/folder-defaults/<uuid:folder_id>")
def set_folder_default(folder_id: UUID, json_data: SwitchBody) -> FolderSwitchModel:
    """Switch a folder on or off for all conversations.

    Also applies to documents added later. Switches of documents and of folders in it take
    precedence.
    """
    switch = switches.set_folder_switch(*context.caller(), None, folder_id, json_data.enabled)
    return FolderSwitchModel.of(switch)


@blueprint.delete("/user/folder-defaults/<uuid:folder_id>")
def forget_folder_default(folder_id: UUID) -> None:
    """Remove your switch of a folder."""
    switches.set_folder_switch(*context.caller(), None, folder_id, None)


@blueprint.get("/conversations/<uuid:conversation_id>/folder-overrides")
def list_folder_overrides(
    conversation_id: UUID, query_data: FolderSwitchQuery
) -> FolderOverrideList:
    """List the folder switches of a conversation."""
    found = switches.list_folder_switches(
        *context.caller(),
        conversation_id,
        parent_id=query_data.parent_id,
        contains=query_data.q.strip(),
    )
    return FolderOverrideList(folders=[FolderOverrideModel.of(folder) for folder in found])


@blueprint.put("/conversations/<uuid:conversation_id>/folder-overrides/<uuid:folder_id>")
def set_folder_override(
    conversation_id: UUID, folder_id: UUID, json_data: SwitchBody
) -> FolderOverrideModel:
    """Switch a folder on or off in a conversation."""
    switch = switches.set_folder_switch(
        *context.caller(), conversation_id, folder_id, json_data.enabled
    )
    return FolderOverrideModel.of(switch)


@blueprint.delete("/conversations/<uuid:conversation_id>/folder-overrides/<uuid:folder_id>")
def forget_folder_override(conversation_id: UUID, folder_id: UUID) -> None:
    """Remove a conversation's switch of a folder."""
    switches.set_folder_switch(*context.caller(), conversation_id, folder_id, None)
