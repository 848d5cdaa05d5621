"""Folders of documents."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from portal.domain.documents import Visibility

MAX_FOLDER_NAME_CHARACTERS = 100
MAX_DESCRIPTION_CHARACTERS = 1000
# Deeper trees are neither shown nor walked well.
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder as a user sees it. `parent_id` is the folder above if the user may see that one."""

    id: UUID
    parent_id: UUID | None
    name: str
    description: str
    visibility: Visibility
    owner_name: str
    can_edit: bool
    has_folders: bool


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder, the folders above it from the top, and the number of documents below it."""

    folder: Folder
    above: tuple[Folder, ...]
    document_count: int


@dataclass(frozen=True, slots=True)
class FolderPath:
    """A folder by its name and those above it, for choosing one."""

    id: UUID
    names: tuple[str, ...]

    @property
    def words(self) -> str:
        return " / ".join(self.names)


@dataclass(frozen=True, slots=True)
class RemovedFolder:
    """What became of the documents of a folder that was deleted, as far as the user may know."""

    trashed_count: int
    moved_count: int
