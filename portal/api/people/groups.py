"""Groups of users, managed by administrators, to share folders with."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.people.groups import MAX_GROUP_NAME_CHARACTERS
from portal.http import context
from portal.services.people import groups
from portal.text.titles import MAX_DESCRIPTION_CHARACTERS

_TAG = {
    "name": "Groups",
    "description": "Groups of users, which can be members of folders. For administrators.",
}

blueprint = ApiBlueprint("groups_api", __name__, url_prefix="/api/groups", tag=_TAG)


class NewGroupBody(RequestModel):
    name: CleanText = Field(
        min_length=1,
        max_length=MAX_GROUP_NAME_CHARACTERS,
        # Only described here: the service checks it, and explains which names are valid.
        json_schema_extra={"pattern": "[^ ]"},
        description="unique among groups, ignoring case",
    )
    description: CleanText = Field("", max_length=MAX_DESCRIPTION_CHARACTERS)


class GroupChangeBody(RequestModel):
    name: CleanText | None = Field(
        None,
        min_length=1,
        max_length=MAX_GROUP_NAME_CHARACTERS,
        description="omit to leave unchanged",
    )
    description: CleanText | None = Field(None, max_length=MAX_DESCRIPTION_CHARACTERS)


class GroupMemberBody(RequestModel):
    name: CleanText = Field(min_length=1, max_length=100, description="the user's name")


class GroupModel(ResponseModel):
    id: UUID
    name: str = Field(examples=["法务"])
    description: str = Field(examples=["起草和审核合同的人"])
    member_count: int


class GroupList(ResponseModel):
    groups: list[GroupModel] = Field(description="by name")


class NamedModel(ResponseModel):
    id: UUID
    name: str = Field(examples=["合同"])


class OpenedGroupModel(GroupModel):
    members: list[NamedModel] = Field(description="users, by name")
    folders: list[NamedModel] = Field(description="folders that the group has access to")


def _read_opened(group_id: UUID) -> OpenedGroupModel:
    opened = groups.get_group(*context.caller(), group_id)
    return OpenedGroupModel.of(
        opened.group,
        members=[NamedModel(id=one, name=name) for one, name in opened.members],
        folders=[NamedModel(id=one, name=name) for one, name in opened.folders],
    )


@blueprint.get("", errors=(403,))
@context.for_administrators
def list_groups() -> GroupList:
    """List groups."""
    listed = groups.list_groups(context.services())
    return GroupList(groups=[GroupModel.of(group) for group in listed])


@blueprint.post("", status_code=201, errors=(403, 409))
@context.for_administrators
def create_group(json_data: NewGroupBody) -> OpenedGroupModel:
    """Create a group."""
    return _read_opened(groups.create_group(*context.caller(), **json_data.model_dump()))


@blueprint.get("/<uuid:group_id>", errors=(403, 404))
@context.for_administrators
def get_group(group_id: UUID) -> OpenedGroupModel:
    """Get a group."""
    return _read_opened(group_id)


@blueprint.patch("/<uuid:group_id>", errors=(403, 404, 409))
@context.for_administrators
def change_group(group_id: UUID, json_data: GroupChangeBody) -> OpenedGroupModel:
    """Rename or describe a group."""
    groups.change_group(*context.caller(), group_id, **json_data.model_dump())
    return _read_opened(group_id)


@blueprint.delete("/<uuid:group_id>", errors=(403, 404))
@context.for_administrators
def delete_group(group_id: UUID) -> None:
    """Delete a group.

    Its members immediately lose the access that it gave them.
    """
    groups.delete_group(*context.caller(), group_id)


@blueprint.put("/<uuid:group_id>/members", errors=(403, 404))
@context.for_administrators
def add_member(group_id: UUID, json_data: GroupMemberBody) -> OpenedGroupModel:
    """Add a user to a group."""
    groups.add_member(*context.caller(), group_id, json_data.name)
    return _read_opened(group_id)


@blueprint.delete("/<uuid:group_id>/members/<uuid:user_id>", errors=(403, 404))
@context.for_administrators
def remove_member(group_id: UUID, user_id: UUID) -> None:
    """Remove a user from a group.

    404 if the user is not a member.
    """
    groups.remove_member(*context.caller(), group_id, user_id)
