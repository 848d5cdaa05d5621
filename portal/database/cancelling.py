"""Cancel the statements of a process that is asked to stop: an index build takes minutes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

_ASK_EVERY_S = 0.2
_TIMEOUT_S = 2.0


class Cancelled(Exception):
    """A statement was cancelled because its process is asked to stop."""


@contextmanager
def cancelled_when(connection: Connection, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Cancel the connection's statements in this block once `should_stop` returns True. Raises
    Cancelled."""
    driver: Any = connection.connection.driver_connection
    has_ended = threading.Event()

    def watch() -> None:
        while not has_ended.wait(_ASK_EVERY_S):
            if should_stop():
                with suppress(psycopg.Error):
                    driver.cancel_safe(timeout=_TIMEOUT_S)

    watcher = threading.Thread(target=watch, name="cancelling", daemon=True)
    watcher.start()
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.QueryCanceled) and should_stop():
            raise Cancelled from error
        raise
    finally:
        has_ended.set()
        watcher.join()
