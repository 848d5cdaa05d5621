"""Notifications about the end of ingestion jobs: shown on every page, in a list, and as a toast."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.documents.notifications import (
    MAX_NAMED,
    Batch,
    Notification,
    NotificationState,
)
from portal.domain.paging import ListPage
from portal.domain.people import User
from portal.errors import existing
from portal.services import Services
from portal.store.documents import notifications as notification_store

# More than a user will read, with room for a large import.
_MAX_PER_USER = 2000


def state(services: Services, user: User) -> NotificationState:
    """Return how many notifications are unread, and whether there are new ones to show."""
    with services.database.read() as session:
        return notification_store.state(session, user)


def list_notifications(
    services: Services,
    user: User,
    *,
    unread_only: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[Notification]:
    """Return a user's notifications, newest first. Raises MalformedRequest on a bad cursor."""
    with services.database.read() as session:
        return notification_store.list_notifications(
            session, user, unread_only=unread_only, cursor=cursor, limit=limit
        )


def list_batches(
    services: Services, user: User, *, cursor: str | None = None, limit: int = 50
) -> ListPage[Batch]:
    """Return a user's notifications, those of large batches as one, newest first. Raises
    MalformedRequest on a bad cursor."""
    with services.database.read() as session:
        return notification_store.list_batches(session, user, cursor=cursor, limit=limit)


def list_batch(services: Services, user: User, batch_id: UUID) -> tuple[Notification, ...]:
    """Return a user's notifications of one batch, what failed first."""
    with services.database.read() as session:
        return notification_store.list_batch(session, user, batch_id)


def take(services: Services, user: User) -> tuple[Notification, ...]:
    """Return the user's undelivered notifications, oldest first. Each is returned once: the caller
    shows it."""
    with services.database.begin() as session:
        return notification_store.take(session, user)


def open_notification(
    services: Services, user: User, notification_id: UUID
) -> tuple[Notification, ...]:
    """Mark a notification read, with its batch if that is reported as one; return what was marked.
    Raises NotFound, also for another user's."""
    with services.database.begin() as session:
        found = existing(notification_store.find(session, user, notification_id))
        batch = notification_store.list_batch(session, user, found.batch_id)
        if len(batch) <= MAX_NAMED:
            batch = (found,)
        notification_store.mark_read(session, user, [one.id for one in batch])
        return batch


def mark_read(
    services: Services,
    user: User,
    ids: Sequence[UUID] | None = None,
    *,
    until: datetime | None = None,
) -> None:
    """Mark these notifications read, or all, or all `until` a moment. With `until`, those that
    arrived while the user was looking stay unread. Ids of other users' notifications have no
    effect."""
    with services.database.begin() as session:
        notification_store.mark_read(session, user, ids, until=until)


def delete_expired(services: Services) -> None:
    """Delete notifications older than PORTAL_NOTIFICATION_DAYS."""
    before = datetime.now(UTC) - timedelta(days=services.settings.notification_days)
    with services.database.begin() as session:
        notification_store.delete_old(session, before=before, max_per_user=_MAX_PER_USER)
