"""Folders beside the list of documents, and the forms that change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext, ngettext

from portal.domain.documents.folder_members import AccessChange, MemberKind
from portal.domain.documents.folders import (
    MAX_FOLDER_NAME_CHARACTERS,
    Folder,
    FolderRole,
    FolderVisibility,
    OpenedFolder,
    default_visibility,
)
from portal.errors import (
    N_,
    Conflict,
    Forbidden,
    InvalidInput,
    NoSuchAccount,
    NotFound,
    PortalError,
)
from portal.http import context
from portal.http.messages import error_message
from portal.services.documents import folders
from portal.services.documents.folders import members as folder_members
from portal.services.people import groups
from portal.text.titles import MAX_DESCRIPTION_CHARACTERS
from portal.web.blueprint import PageBlueprint
from portal.web.i18n import sentence_gap
from portal.web.layout import Answer, render_form, see_other, wants_fragment

ROLE_WORDS = {
    FolderRole.READER: N_("Reader: can view"),
    FolderRole.CONTRIBUTOR: N_("Contributor: can also add documents"),
    FolderRole.KEEPER: N_("Keeper: can also edit, delete and manage members"),
}

blueprint = PageBlueprint("folders", __name__, "/folders")


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A folder in the tree, and its level from 0."""

    folder: Folder
    level: int


def tree_values(opened: OpenedFolder | None) -> dict[str, Any]:
    """Return the rows of the tree: the top level, and the children of the folders on the path to
    the opened one."""
    path = [*(one.id for one in opened.above), opened.folder.id] if opened else []
    found = folders.list_children(*context.caller(), [None, *path])
    by_parent: dict[UUID | None, list[Folder]] = {}
    for folder in found:
        by_parent.setdefault(folder.parent_id, []).append(folder)

    def rows(parent_id: UUID | None, level: int) -> Iterator[TreeRow]:
        for folder in by_parent.get(parent_id, []):
            yield TreeRow(folder, level)
            if folder.id in path:
                yield from rows(folder.id, level + 1)

    return {"tree": tuple(rows(None, 0)), "open_folders": path}


@blueprint.get("/new")
def show_new() -> Answer:
    parent_id = parse_id(request.args.get("parent"))
    opened = folders.get_folder(*context.caller(), parent_id) if parent_id else None
    return _form(None, parent_id, opened)


@blueprint.post("")
def create() -> Answer:
    parent_id = parse_id(request.form.get("parent_id"))
    try:
        folder_id = folders.create_folder(
            *context.caller(),
            name=request.form.get("name", ""),
            description=request.form.get("description", ""),
            parent_id=parent_id,
            visibility=request.form.get("visibility", type=FolderVisibility),
        )
    except (InvalidInput, Conflict) as error:
        opened = folders.get_folder(*context.caller(), parent_id) if parent_id else None
        return _form(None, parent_id, opened, error)
    return see_other(url_for("documents.index", folder=folder_id), gettext("Folder created."))


@blueprint.get("/<uuid:folder_id>/edit")
def show_edit(folder_id: UUID) -> Answer:
    opened = _open_to_change(folder_id)
    return _form(opened.folder, opened.folder.parent_id, opened)


@blueprint.post("/<uuid:folder_id>/edit")
def edit(folder_id: UUID) -> Answer:
    """Rename, describe and move a folder."""
    services, user = context.caller()
    opened = _open_to_change(folder_id)
    try:
        parent_id = parse_id(request.form.get("parent_id"))
        if parent_id != opened.folder.parent_id:
            access_change = folder_members.preview_folder_move(services, user, folder_id, parent_id)
            if access_change.matters and request.form.get("seen") != access_change.digest:
                return _form(opened.folder, parent_id, opened, access_change=access_change)
            folders.move_folder(services, user, folder_id, parent_id)
        folders.change_folder(
            services,
            user,
            folder_id,
            name=request.form.get("name", ""),
            description=request.form.get("description", ""),
            visibility=request.form.get("visibility", type=FolderVisibility),
        )
    except (InvalidInput, Conflict) as error:
        return _form(opened.folder, opened.folder.parent_id, opened, error)
    return see_other(url_for("documents.index", folder=folder_id), gettext("Saved."))


@blueprint.get("/<uuid:folder_id>/delete")
def confirm_delete(folder_id: UUID) -> Answer:
    values = {
        "opened": _open_to_change(folder_id),
        "document_count": folders.count_documents(*context.caller(), folder_id),
        "access_change": folder_members.preview_removal(*context.caller(), folder_id),
    }
    if wants_fragment():
        return render_template("fragments/folders/_confirm_delete.html", **values)
    return render_template("pages/documents/folder_delete.html", **values)


@blueprint.post("/<uuid:folder_id>/delete")
def delete(folder_id: UUID) -> Answer:
    opened = _open_to_change(folder_id)
    choice = request.form.get("documents", "")
    if choice not in {"keep", "trash"}:
        raise InvalidInput("choose what happens to the documents")
    removed = folders.delete_folder(*context.caller(), folder_id, trash_documents=choice == "trash")
    words = [gettext("The folder “%(name)s” was deleted.", name=opened.folder.name)]
    if removed.trashed_count:
        words.append(
            ngettext(
                "%(num)s document is in the trash.",
                "%(num)s documents are in the trash.",
                removed.trashed_count,
            )
        )
    if removed.moved_count:
        words.append(
            ngettext(
                "%(num)s document moved to the folder above.",
                "%(num)s documents moved to the folder above.",
                removed.moved_count,
            )
        )
    parent_id = opened.folder.parent_id
    return see_other(url_for("documents.index", folder=parent_id), sentence_gap().join(words))


@blueprint.get("/<uuid:folder_id>/members")
def show_members(folder_id: UUID) -> Answer:
    """Show who may see a folder; users who may share it also get forms to change that."""
    return _access_page(folder_id)


@blueprint.post("/<uuid:folder_id>/access")
def set_access(folder_id: UUID) -> Answer:
    _require_shareable(folder_id)
    folders.change_folder(
        *context.caller(),
        folder_id,
        visibility=request.form.get("visibility", type=FolderVisibility),
    )
    return _members_changed(folder_id, gettext("Saved."))


@blueprint.post("/<uuid:folder_id>/members")
def set_member(folder_id: UUID) -> Answer:
    """Add a member, or change their role."""
    kind = request.form.get("kind", type=MemberKind)
    role = request.form.get("role", type=FolderRole)
    _require_shareable(folder_id)
    if kind is None or role is None:
        raise InvalidInput("choose a user or a group, and a role")
    try:
        folder_members.set_member(
            *context.caller(),
            folder_id,
            kind=kind,
            name=request.form.get("name", ""),
            role=role,
        )
    except (NoSuchAccount, NotFound) as error:
        return _access_page(folder_id, error, sent=request.form)
    return _members_changed(folder_id, gettext("Saved."))


@blueprint.post("/<uuid:folder_id>/members/<uuid:member_id>/remove")
def remove_member(folder_id: UUID, member_id: UUID) -> Answer:
    folder_members.remove_member(*context.caller(), folder_id, member_id)
    return _members_changed(folder_id, gettext("Member removed."))


def _require_shareable(folder_id: UUID) -> None:
    if not folders.get_folder(*context.caller(), folder_id).folder.can_share:
        raise Forbidden


def _members_changed(folder_id: UUID, message: str) -> Answer:
    return see_other(url_for("folders.show_members", folder_id=folder_id), message)


def _access_page(
    folder_id: UUID, error: PortalError | None = None, *, sent: Mapping[str, str] | None = None
) -> Answer:
    services, user = context.caller()
    opened = folders.get_folder(services, user, folder_id)
    can_share = opened.folder.can_share
    return render_form(
        "pages/documents/folder_members.html",
        error,
        opened=opened,
        sent=sent or {},
        document_count=folders.count_documents(services, user, folder_id) if can_share else 0,
        members=folder_members.list_members(services, user, folder_id),
        groups=groups.list_groups(services) if can_share else [],
        roles=ROLE_WORDS,
        access_change=folder_members.preview_access(services, user, folder_id)
        if can_share
        else None,
    )


def parse_id(value: str | None) -> UUID | None:
    """Parse the id of a folder in a form; None for an empty one. Raises InvalidInput."""
    try:
        return UUID(value) if value else None
    except ValueError as error:
        raise InvalidInput("folder_id must be the id of a folder") from error


def _open_to_change(folder_id: UUID) -> OpenedFolder:
    opened = folders.get_folder(*context.caller(), folder_id)
    if not opened.folder.can_edit:
        raise Forbidden
    return opened


def _form(
    folder: Folder | None,
    parent_id: UUID | None,
    opened: OpenedFolder | None,
    error: PortalError | None = None,
    access_change: AccessChange | None = None,
) -> Answer:
    """Render the form for a new or an existing folder; with `access_change` also who gains and
    loses access to its documents by the requested move."""
    sent = request.form
    parent = opened.folder if opened else None
    visibility = folder.visibility if folder else default_visibility(parent)
    shown = {
        "name": sent.get("name", folder.name if folder else ""),
        "description": sent.get("description", folder.description if folder else ""),
        "parent_id": sent.get("parent_id", str(parent_id or "")),
        "visibility": sent.get("visibility", visibility),
    }
    values = {
        "folder": folder,
        "shown": shown,
        "paths": folders.list_paths_to_add(
            *context.caller(), also=folder.parent_id if folder else None
        ),
        "folder_error": error_message(error) if error else "",
        "access_change": access_change,
        "max_name": MAX_FOLDER_NAME_CHARACTERS,
        "max_description": MAX_DESCRIPTION_CHARACTERS,
    }
    page = render_template("pages/documents/folder.html", **values)
    return (page, error.status) if error else page
