"""The tree of folders that contain documents."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.documents.bulk import BulkTarget
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import MAX_FOLDER_NAME_CHARACTERS, FolderRole, FolderVisibility
from portal.http import context
from portal.services.documents import folders
from portal.services.documents.folders import members as folder_members
from portal.text.titles import MAX_DESCRIPTION_CHARACTERS

_TAG = {"name": "Folders", "description": "The tree of folders that contain documents."}

blueprint = ApiBlueprint("folders_api", __name__, url_prefix="/api/folders", tag=_TAG)

_NAME = "unique among the folders beside it; without slashes"
_VISIBILITY = (
    "who may see the folder; with `members` only they see the shared documents in it and below "
    "it, otherwise each document has its own visibility"
)


class FolderQuery(RequestModel):
    parent_id: UUID | None = Field(None, description="default: the top-level folders")


class NewFolderBody(RequestModel):
    name: CleanText = Field(
        min_length=1,
        max_length=MAX_FOLDER_NAME_CHARACTERS,
        # Only described here: the service checks it, and explains which names are valid.
        json_schema_extra={"pattern": "[^/ ]"},
        description=_NAME,
    )
    parent_id: UUID | None = Field(None, description="default: the top level")
    description: CleanText = Field("", max_length=MAX_DESCRIPTION_CHARACTERS)
    visibility: FolderVisibility | None = Field(None, description="default: as the parent folder")


class FolderChangeBody(RequestModel):
    name: CleanText | None = Field(
        None, min_length=1, max_length=MAX_FOLDER_NAME_CHARACTERS, description=_NAME
    )
    description: CleanText | None = Field(None, max_length=MAX_DESCRIPTION_CHARACTERS)
    visibility: FolderVisibility | None = Field(None, description=_VISIBILITY)


class ParentBody(RequestModel):
    parent_id: UUID | None = Field(description="null for the top level")


class DeleteFolderQuery(RequestModel):
    documents: Literal["keep", "trash"] = Field(
        description="`keep` moves them to the parent folder; `trash` moves those that you "
        "may change to the trash and the others to the parent folder"
    )


class FolderModel(ResponseModel):
    id: UUID
    parent_id: UUID | None = Field(
        description="null if it is at the top level for you", examples=[None]
    )
    name: str = Field(examples=["合同"])
    description: str = Field(examples=["与供应商签订的合同"])
    visibility: FolderVisibility = Field(description=_VISIBILITY)
    owner: str
    has_folders: bool = Field(description="whether it contains folders")


class PathPartModel(ResponseModel):
    id: UUID
    name: str


class OpenedFolderModel(FolderModel):
    path: list[PathPartModel] = Field(description="parent folders, from the top", examples=[[]])
    document_count: int = Field(description="documents visible to you in it and below it")

    can_add: bool = Field(description="whether you may add documents and folders")
    can_edit: bool = Field(description="whether you may change, move and delete it")
    can_share: bool = Field(description="whether you may change who has access")


class MemberBody(RequestModel):
    kind: MemberKind = Field(description="`user` or `group`")
    name: CleanText = Field(min_length=1, max_length=100, description="name of the user or group")
    role: FolderRole = Field(
        description="`reader` may read, `contributor` may also add, `keeper` may also "
        "change, move and delete what is in the folder and manage its members"
    )


class MemberModel(ResponseModel):
    kind: MemberKind
    id: UUID
    name: str = Field(examples=["法务"])
    role: FolderRole
    user_count: int = Field(description="1 for a user")


class MemberListModel(ResponseModel):
    members: list[MemberModel] = Field(description="groups first, by name; excludes the owner")


class AccessChangeQuery(RequestModel):
    document_ids: list[UUID] = Field(min_length=1, max_length=100)
    folder_id: UUID | None = Field(description="target folder; null for no folder")


class FolderChangeQuery(RequestModel):
    change: Literal["access", "move", "delete"] = Field(
        description="`access` lifts the limit of a members-only folder, or restricts a folder to "
        "its members; `delete` leaves the documents in the parent folder"
    )
    parent_id: UUID | None = Field(None, description="for `move`; default: the top level")


class AccessChangeModel(ResponseModel):
    document_count: int = Field(description="shared documents whose readers would change")
    opens: bool = Field(description="whether all users would see them")
    closes: bool = Field(description="whether they would no longer be visible to all users")
    gains: list[str] = Field(description="users and groups that gain access", examples=[["法务"]])
    loses: list[str] = Field(description="users and groups that lose access", examples=[[]])
    keeps: list[str] = Field(
        description="where it `closes`, users and groups that keep access", examples=[[]]
    )


class FolderListModel(ResponseModel):
    folders: list[FolderModel]


class RemovedFolderModel(ResponseModel):
    trashed_count: int
    moved_count: int


def _read_opened(folder_id: UUID) -> OpenedFolderModel:
    opened = folders.get_folder(*context.caller(), folder_id)
    path = [PathPartModel.of(folder_above) for folder_above in opened.above]
    return OpenedFolderModel.of(
        opened.folder,
        owner=opened.folder.owner_name,
        path=path,
        document_count=folders.count_documents(*context.caller(), folder_id),
    )


@blueprint.get("", errors=(404,))
def list_folders(query_data: FolderQuery) -> FolderListModel:
    """List the folders in a folder.

    Lists the folders that you may see, by name. A folder below one that you may not see is listed
    at the top level.
    """
    services, user = context.caller()
    if query_data.parent_id is not None:
        folders.get_folder(services, user, query_data.parent_id)
    found = folders.list_children(services, user, [query_data.parent_id])
    return FolderListModel(folders=[FolderModel.of(one, owner=one.owner_name) for one in found])


@blueprint.post("", status_code=201, errors=(404, 409))
def create_folder(json_data: NewFolderBody) -> OpenedFolderModel:
    """Create a folder."""
    return _read_opened(folders.create_folder(*context.caller(), **json_data.model_dump()))


@blueprint.get("/<uuid:folder_id>")
def get_folder(folder_id: UUID) -> OpenedFolderModel:
    """Get a folder."""
    return _read_opened(folder_id)


@blueprint.patch("/<uuid:folder_id>", errors=(409,))
def change_folder(folder_id: UUID, json_data: FolderChangeBody) -> OpenedFolderModel:
    """Change a folder.

    Changes its name, description and visibility. `GET …/sight` previews who gains and loses access.
    """
    folders.change_folder(*context.caller(), folder_id, **json_data.model_dump())
    return _read_opened(folder_id)


@blueprint.put("/<uuid:folder_id>/parent", errors=(409,))
def move_folder(folder_id: UUID, json_data: ParentBody) -> OpenedFolderModel:
    """Move a folder.

    Everything below it moves too.
    """
    folders.move_folder(*context.caller(), folder_id, json_data.parent_id)
    return _read_opened(folder_id)


@blueprint.post("/sight", errors=(404,))
@context.reads
def preview_move(json_data: AccessChangeQuery) -> AccessChangeModel:
    """Preview who gains and loses access.

    The preview is for documents that would be moved to a folder; nothing is changed.
    """
    services, user = context.caller()
    target = BulkTarget(tuple(json_data.document_ids))
    change = folder_members.preview_move(services, user, target, json_data.folder_id)
    return AccessChangeModel.of(change)


@blueprint.get("/<uuid:folder_id>/sight")
def preview_change(folder_id: UUID, query_data: FolderChangeQuery) -> AccessChangeModel:
    """Preview who gains and loses access to a folder.

    The preview is for the shared documents in it and below it, if it is opened, restricted, moved
    or deleted; nothing is changed. A members-only folder that becomes `private` is hidden, but its
    shared documents open as with `shared`: preview both with `access`.
    """
    services, user = context.caller()
    if query_data.change == "move":
        change = folder_members.preview_folder_move(services, user, folder_id, query_data.parent_id)
    elif query_data.change == "access":
        change = folder_members.preview_access(services, user, folder_id)
    else:
        change = folder_members.preview_removal(services, user, folder_id)
    return AccessChangeModel.of(change)


@blueprint.get("/<uuid:folder_id>/members")
def list_members(folder_id: UUID) -> MemberListModel:
    """List the members of a folder."""
    return _members(folder_id)


@blueprint.put("/<uuid:folder_id>/members")
def set_member(folder_id: UUID, json_data: MemberBody) -> MemberListModel:
    """Add a member to a folder, or change their role.

    Takes effect while the folder's visibility is `members`. 404 for an unknown user or group.
    """
    folder_members.set_member(
        *context.caller(), folder_id, kind=json_data.kind, name=json_data.name, role=json_data.role
    )
    return _members(folder_id)


@blueprint.delete("/<uuid:folder_id>/members/<uuid:member_id>")
def remove_member(folder_id: UUID, member_id: UUID) -> None:
    """Remove a member from a folder.

    Takes effect with the member's next request.
    """
    folder_members.remove_member(*context.caller(), folder_id, member_id)


def _members(folder_id: UUID) -> MemberListModel:
    listed = folder_members.list_members(*context.caller(), folder_id)
    return MemberListModel(members=[MemberModel.of(member) for member in listed])


@blueprint.delete("/<uuid:folder_id>")
def delete_folder(folder_id: UUID, query_data: DeleteFolderQuery) -> RemovedFolderModel:
    """Delete a folder.

    The folders below it are deleted too; `documents` decides what happens to their documents.
    """
    is_trash = query_data.documents == "trash"
    removed = folders.delete_folder(*context.caller(), folder_id, trash_documents=is_trash)
    return RemovedFolderModel.of(removed)
