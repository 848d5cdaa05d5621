"""Expiry of the trash: documents deleted long enough ago are purged."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog

from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.documents.library import erase
from portal.store.documents import rows as document_store

log = structlog.get_logger(__name__)


def purged_at(services: Services, deleted_at: datetime) -> datetime | None:
    """Return when a document deleted at this time is purged; None for never."""
    days = services.settings.trash_days
    return deleted_at + timedelta(days=days) if days else None


def purge_expired(
    services: Services,
    *,
    seconds: float,
    now: datetime | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Purge expired documents and return their number. Purges what was deleted `trash_days` ago,
    one transaction each, until none is left, `seconds` have passed or `should_stop` returns True.
    Safe in several workers at once. A document that cannot be purged is left for the next call.
    Raises DatabaseUnavailable."""
    if not services.settings.trash_days:
        return 0
    before = (now or datetime.now(UTC)) - timedelta(days=services.settings.trash_days)
    ends_at, count, failed = time.monotonic() + seconds, 0, set[UUID]()
    while True:
        document_id: UUID | None = None
        try:
            with services.database.begin() as session:
                document_id = document_store.lock_expired(session, before=before, other_than=failed)
                if document_id is None:
                    return count
                erase(session, document_id)
        except DatabaseUnavailable:
            raise
        except Exception:
            if document_id is None:
                raise
            # Skip only this one: it must not hold up the others.
            failed.add(document_id)
            log.exception("document_not_purged", document_id=str(document_id))
        else:
            count += 1
            log.info("document_purged", document_id=str(document_id))
        if time.monotonic() >= ends_at or should_stop():
            return count
