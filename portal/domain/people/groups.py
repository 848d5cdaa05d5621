"""Groups of users."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

MAX_GROUP_NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Group:
    """A group, and the number of its members."""

    id: UUID
    name: str
    description: str
    member_count: int


@dataclass(frozen=True, slots=True)
class OpenedGroup:
    """A group, its members by name, and the folders that are open to it."""

    group: Group
    members: tuple[tuple[UUID, str], ...]
    folders: tuple[tuple[UUID, str], ...]
