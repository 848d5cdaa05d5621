"""Members of folders, and the users who gain or lose access to documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.documents.folders import FolderRole


class MemberKind(StrEnum):
    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class FolderMember:
    """A user or a group that may see a folder; `user_count` is 1 for a user."""

    kind: MemberKind
    id: UUID
    name: str
    role: FolderRole
    user_count: int = 1


@dataclass(frozen=True, slots=True)
class AccessChange:
    """Who gains and loses access to documents by moving, deleting or changing folders. With `opens`
    all users gain it, with `closes` all but `keeps` lose it; otherwise `gains` and `loses` name
    users and groups."""

    document_count: int
    opens: bool = False
    closes: bool = False
    gains: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()

    @property
    def matters(self) -> bool:
        return bool(self.opens or self.closes or self.gains or self.loses)

    @property
    def digest(self) -> str:
        """Return a digest for the form that confirms this change. If it differs when the form is
        sent, because others moved documents or changed members, the user is asked again."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]
