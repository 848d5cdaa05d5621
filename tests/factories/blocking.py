"""Transactions that wait for each other."""

from __future__ import annotations

import threading

from sqlalchemy import text

from portal.services import Services

_WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def wait_until_blocked(services: Services, count: int = 1) -> None:
    """Wait until `count` other transactions of this database wait for a lock."""
    for _ in range(3000):
        with services.database.engine.connect() as connection:
            if (connection.scalar(_WAITING) or 0) >= count:
                return
        threading.Event().wait(0.01)
    raise AssertionError("no transaction waits")
