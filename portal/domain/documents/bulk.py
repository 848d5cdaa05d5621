"""Changes of many documents at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from portal.domain.documents import DocumentFilter

MAX_BULK_IDS = 1000


class BulkAction(StrEnum):
    MOVE = "move"
    ADD_TAG = "add_tag"
    REMOVE_TAG = "remove_tag"
    DOMAIN = "domain"
    VISIBILITY = "visibility"
    SWITCH = "switch"
    DELETE = "delete"
    RESTORE = "restore"
    READ_AGAIN = "read_again"


@dataclass(frozen=True, slots=True)
class BulkTarget:
    """The documents with these ids; without ids, all that match the filters."""

    ids: tuple[UUID, ...] | None
    filters: DocumentFilter = field(default_factory=DocumentFilter)


class BulkCounts(NamedTuple):
    """How many documents of a target the user sees, and how many of those they may change."""

    total_count: int
    editable_count: int


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that was left as it is; `reason` is an error's code."""

    id: UUID
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The result of a bulk change. `change_id` is for undoing it, None if nothing can be undone.
    `skipped` has the first of `skipped_count` documents; ids that the user may not see count as
    missing."""

    change_id: UUID | None
    changed_count: int
    skipped: tuple[SkippedDocument, ...] = ()
    skipped_count: int = 0
    missing_count: int = 0


@dataclass(frozen=True, slots=True)
class BulkReport:
    """A stored result, for showing it later."""

    action: BulkAction
    result: BulkResult
