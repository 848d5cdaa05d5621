"""Notifications: a document is ready or failed, a new device signed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import Failure

MANY_IN_WORK = 5
"""From this many documents on, notifications are merged as one import."""
MAX_HELD_S = 300.0
"""Announce an unfinished import in part after this time."""
MAX_UNREAD_COUNTED = 100
"""Above it, the exact number does not matter."""


class NotificationKind(StrEnum):
    """The subject of a notification: the end of a job, or a sign-in."""

    READY = "ready"
    FAILED = "failed"
    NEW_DEVICE = "new_device"
    RECOVERY_CODE = "recovery_code"


OF_ACCOUNT = (NotificationKind.NEW_DEVICE, NotificationKind.RECOVERY_CODE)
"""These are about the account, not about a document."""


class Beside(StrEnum):
    """What failed while an earlier text is still searched: a new version, or reading the file
    again."""

    VERSION = "version"
    REREAD = "reread"


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification; `title` is the document's current one. Those about an account have no
    document or job: `details` of a new device are `program`, `platform` and `address`, of a used
    recovery code `left`.

    `failure` is the reason, `beside` is set if an earlier text is still searched, `warnings` tell
    what could not be read. `read_at` is None until the user opened it or marked it read.
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
    """A page of a list; `next_cursor` is None at the end."""

    items: tuple[Notification, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class NotificationState:
    """Counts of a user's notifications.

    `unread` is counted up to MAX_UNREAD_COUNTED; `in_work`, the user's unfinished documents, up to
    MANY_IN_WORK. `waiting_s` is the age of the oldest undelivered one, None if all were delivered.
    """

    unread: int = 0
    in_work: int = 0
    waiting_s: float | None = None

    @property
    def is_due(self) -> bool:
        """Return whether to show them now: those of many documents are collected."""
        if self.waiting_s is None:
            return False
        return self.in_work < MANY_IN_WORK or self.waiting_s >= MAX_HELD_S
