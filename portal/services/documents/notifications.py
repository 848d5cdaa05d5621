"""Notifications about the end of ingestion jobs: shown on every page, in a list, and as a toast."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.documents.notifications import MAX_NAMED, Notification
from portal.domain.people import User
from portal.errors import existing
from portal.services import Services
from portal.services.transactions import in_transaction, reading
from portal.store.documents import notifications as notification_store

# More than a user will read, with room for a large import.
_MAX_PER_USER = 2000


state = reading(notification_store.state)
list_notifications = reading(notification_store.list_notifications)
list_batches = reading(notification_store.list_batches)
list_batch = reading(notification_store.list_batch)
take = in_transaction(notification_store.take)
mark_read = in_transaction(notification_store.mark_read)


def open_notification(
    services: Services, user: User, notification_id: UUID
) -> tuple[Notification, ...]:
    """Mark a notification as read, with its batch if that is reported as one; return those marked.
    Raises NotFound, also for another user's."""
    with services.database.begin() as session:
        found = existing(notification_store.find(session, user, notification_id))
        batch = notification_store.list_batch(session, user, found.batch_id)
        if len(batch) <= MAX_NAMED:
            batch = (found,)
        notification_store.mark_read(session, user, [notification.id for notification in batch])
        return batch


def delete_expired(services: Services) -> None:
    """Delete notifications older than PORTAL_NOTIFICATION_DAYS."""
    before = datetime.now(UTC) - timedelta(days=services.settings.notification_days)
    with services.database.begin() as session:
        notification_store.delete_old(session, before=before, max_per_user=_MAX_PER_USER)
