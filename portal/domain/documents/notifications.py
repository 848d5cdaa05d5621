"""Notifications: a document is ready or failed, a new device signed in, a user shares something."""

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
FEW_HELD_S = 15.0
"""The same while few documents are unfinished: most finish within this time."""
MAX_NAMED = 2
"""Documents of a batch that are named one by one. More are reported as one, by their counts."""
MAX_UNREAD_COUNTED = 100
"""Above this, the exact number does not matter."""


class NotificationKind(StrEnum):
    """The subject of a notification: the end of a job, a sign-in, or a shared conversation."""

    READY = "ready"
    FAILED = "failed"
    NEW_DEVICE = "new_device"
    RECOVERY_CODE = "recovery_code"
    SHARED = "shared"


OF_ACCOUNT = (NotificationKind.NEW_DEVICE, NotificationKind.RECOVERY_CODE)
"""These are about the account, not about a document."""


class FailedUpdate(StrEnum):
    """The update that failed while an earlier text stays searchable: a new version, or reading the
    file again."""

    VERSION = "version"
    REREAD = "reread"


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification; `title` is the document's current one. Only those about documents have a
    document and a job; `details` of a new device are `program`, `platform` and `address`, of a used
    recovery code `left`, of a shared conversation `conversation`, its id, and `owner`, a name.

    `failure` is the reason, `beside` is set if an earlier text is still searched, `warnings` say
    what could not be read. `read_at` is None until the user opens it or marks it read.
    """

    id: UUID
    kind: NotificationKind
    document_id: UUID | None
    job_id: UUID | None
    title: str | None
    failure: Failure | None
    beside: FailedUpdate | None
    warnings: tuple[str, ...]
    created_at: datetime
    read_at: datetime | None
    batch_id: UUID
    details: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs that were unfinished at the same time: how many documents became ready and how many
    failed. `latest` is the newest notification. A small batch (`is_named`) is listed once for each
    notification, which is then its `latest`."""

    latest: Notification
    ready: int
    failed: int
    is_unread: bool

    @property
    def is_named(self) -> bool:
        return self.ready + self.failed <= MAX_NAMED


@dataclass(frozen=True, slots=True)
class NotificationState:
    """Counts of a user's notifications.

    `unread`, and `unread_rows`, the rows of a list that show them, are counted up to
    MAX_UNREAD_COUNTED; `in_work`, the user's unfinished documents, up to MANY_IN_WORK. `waiting_s`
    is the age of the oldest undelivered one, None if all were delivered.
    """

    unread: int = 0
    unread_rows: int = 0
    in_work: int = 0
    waiting_s: float | None = None

    @property
    def is_due(self) -> bool:
        """Return whether to show them now, or to collect those of several documents first."""
        if self.waiting_s is None:
            return False
        if not self.in_work:
            return True
        max_held_s = MAX_HELD_S if self.in_work >= MANY_IN_WORK else FEW_HELD_S
        return self.waiting_s >= max_held_s
