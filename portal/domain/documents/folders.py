"""Folders of documents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

MAX_FOLDER_NAME_CHARACTERS = 100
# Deeper trees are hard to show and to walk.
MAX_DEPTH = 20


class FolderVisibility(StrEnum):
    """Who may see a folder; a members-only one also decides who sees the documents in it."""

    SHARED = "shared"
    PRIVATE = "private"
    MEMBERS = "members"


class FolderRole(StrEnum):
    """What a member may do in a folder; each role includes those before it."""

    READER = "reader"
    CONTRIBUTOR = "contributor"
    """May also add documents and folders."""
    KEEPER = "keeper"
    """May also change, move and delete what is in it, and manage its members."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as a user sees it. `parent_id` is the folder above if the user may see that one."""

    id: UUID
    parent_id: UUID | None
    name: str
    description: str
    visibility: FolderVisibility
    gate_id: UUID | None
    """The nearest folder, itself or above, that is open to members only."""
    owner_name: str
    can_add: bool
    can_edit: bool
    can_share: bool
    """Whether the user may decide who sees it."""
    has_folders: bool


def default_visibility(parent: Folder | None) -> FolderVisibility:
    """Return the visibility of a new folder: private in a private one, otherwise shared, which a
    members-only folder above still restricts."""
    is_private = parent is not None and parent.visibility is FolderVisibility.PRIVATE
    return FolderVisibility.PRIVATE if is_private else FolderVisibility.SHARED


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder, and the folders above it from the top."""

    folder: Folder
    above: tuple[Folder, ...]


@dataclass(frozen=True, slots=True)
class FolderPath:
    """A folder with its name and the names of the folders above it, from the top."""

    id: UUID
    names: tuple[str, ...]

    @property
    def words(self) -> str:
        return " / ".join(self.names)


@dataclass(frozen=True, slots=True)
class RemovedFolder:
    """What happened to the documents of a folder that was deleted, as far as the user may know."""

    trashed_count: int
    moved_count: int
