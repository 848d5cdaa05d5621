"""What users are notified of: their documents are ready or failed, a new device signed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import Failure

MANY_IN_WORK = 5
"""From so many documents on, notes are merged: it is an import."""
MAX_HELD_S = 300.0
"""After so long an import is told of in part."""
MAX_UNREAD_COUNTED = 100
"""Above it, the exact number does not matter."""


class NotificationKind(StrEnum):
    """What a notification is about: how preparing a document ended, or a sign-in."""

    READY = "ready"
    FAILED = "failed"
    NEW_DEVICE = "new_device"
    RECOVERY_CODE = "recovery_code"


OF_ACCOUNT = (NotificationKind.NEW_DEVICE, NotificationKind.RECOVERY_CODE)
"""These are about the account, not about a document."""


class Beside(StrEnum):
    """What failed beside a text that was searched already, and still is: a new version of the
    document, or reading the same file again."""

    VERSION = "version"
    REREAD = "reread"


@dataclass(frozen=True, slots=True)
class Notification:
    """How preparing a document ended; `title` is the document's as it is now. A new device has no
    document and job, and its `details` are `program`, `platform` and `address`; those of a used
    recovery code are `left`.

    `failure` says why it failed, `beside` that text from before is still searched. `warnings`
    say what of it could not be read. `read_at` is None until the user opened it or said so.
    """

    id: UUID
    kind: NotificationKind
    document_id: UUID | None
    job_id: UUID | None
    title: str | None
    failure: Failure | None
    beside: Beside | None
    warnings: tuple[str, ...]
    created_at: datetime
    read_at: datetime | None
    details: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """One page of a list; `next_cursor` is opaque and None at the end."""

    items: tuple[Notification, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class NotificationState:
    """What a page knows of a user's notifications.

    `unread` is counted to MAX_UNREAD_COUNTED, `in_work`, the user's documents that are queued
    or being prepared, to MANY_IN_WORK. `waiting_s` is since when they were to be told of something,
    None when they were told of everything.
    """

    unread: int = 0
    in_work: int = 0
    waiting_s: float | None = None

    @property
    def is_due(self) -> bool:
        """Return whether to show them now, not for each of many documents that end one after
        another."""
        if self.waiting_s is None:
            return False
        return self.in_work < MANY_IN_WORK or self.waiting_s >= MAX_HELD_S
