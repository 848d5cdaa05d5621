"""Telling people how preparing their documents ended: on every page, in a list, and once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from portal.domain.notifications import Notification, NotificationPage, NotificationState
from portal.domain.people import User
from portal.errors import NotFound
from portal.services import Services
from portal.store.documents import notifications as notification_store

# More than anybody reads, and room for what a large import brings.
_MAX_PER_USER = 2000


def state(services: Services, user: User) -> NotificationState:
    """How many a person has not read, and whether there is something to tell them."""
    with services.database.read() as session:
        return notification_store.state(session, user)


def list_notifications(
    services: Services,
    user: User,
    *,
    unread_only: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> NotificationPage:
    """A person's, newest first. Raises MalformedRequest on a bad cursor."""
    with services.database.read() as session:
        return notification_store.list_notifications(
            session, user, unread_only=unread_only, cursor=cursor, limit=limit
        )


def take(services: Services, user: User) -> tuple[Notification, ...]:
    """What a person was not told of yet, oldest first. Each is given out once: the caller shows
    it."""
    with services.database.begin() as session:
        return notification_store.take(session, user)


def open_notification(services: Services, user: User, notification_id: UUID) -> Notification:
    """One that the person goes to, and so has read. Raises NotFound, also for another's."""
    with services.database.begin() as session:
        found = notification_store.find(session, user, notification_id)
        if found is None:
            raise NotFound
        notification_store.mark_read(session, user, [notification_id])
        return found


def mark_read(
    services: Services,
    user: User,
    ids: Sequence[UUID] | None = None,
    *,
    until: datetime | None = None,
) -> None:
    """Note that a person knows of these, or of all, or of all `until` a moment: what came while
    they looked they have not seen. Ids of others' change nothing."""
    with services.database.begin() as session:
        notification_store.mark_read(session, user, ids, until=until)


def forget_old(services: Services) -> None:
    """Drop what has been kept for PORTAL_NOTIFICATION_DAYS."""
    before = datetime.now(UTC) - timedelta(days=services.settings.notification_days)
    with services.database.begin() as session:
        notification_store.delete_old(session, before=before, max_per_user=_MAX_PER_USER)
