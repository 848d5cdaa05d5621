"""Document selection: system → a user's default → a conversation's override."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import MediaType


class SelectionSource(StrEnum):
    """The tier that decides."""

    SYSTEM = "system"
    USER = "user"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class DocumentSwitch:
    """A document with its switches. `user_default` and `override` are None where a tier has none;
    `override` is also None outside a conversation."""

    document_id: UUID
    title: str
    media_type: MediaType
    user_default: bool | None
    override: bool | None = None

    @property
    def enabled(self) -> bool:
        if self.override is not None:
            return self.override
        return self.user_default if self.user_default is not None else True

    @property
    def source(self) -> SelectionSource:
        if self.override is not None:
            return SelectionSource.CONVERSATION
        return SelectionSource.USER if self.user_default is not None else SelectionSource.SYSTEM


@dataclass(frozen=True, slots=True)
class SelectionPage:
    """A page of switches by title. The counts are of all documents visible to the user, filtered or
    not; `next_cursor` is None at the end."""

    items: tuple[DocumentSwitch, ...]
    enabled_count: int
    total_count: int
    next_cursor: str | None = None
