"""A look at the database that comes back in time, whatever has become of the database.

A server that vanished, or a network that swallows everything, leaves whoever waits for it waiting:
a statement timeout is kept by the server, and the driver waits at least two seconds for a new
connection. Who asks whether the database is well must not be caught in that.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import psycopg
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from portal.errors import DatabaseUnavailable

T = TypeVar("T")

# Of those that hang, so many are waited for at the same time; more would only hang as well.
_MAX_RETRIES = 8
# The least that the driver knows.
_CONNECT_TIMEOUT_S = 2


class Prober:
    """Runs what only reads in a thread and on a connection of its own. Safe for threads."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            connect_args={"connect_timeout": _CONNECT_TIMEOUT_S, "prepare_threshold": None},
        )
        event.listen(self._engine, "do_connect", _connect)
        self._places = threading.BoundedSemaphore(_MAX_RETRIES)

    def run(self, work: Callable[[Session], T], *, timeout_s: float) -> T:
        """What `work` gives. Raises DatabaseUnavailable when that takes longer, however far it
        has got, and whatever `work` raises."""
        ends_at = time.monotonic() + timeout_s
        if not self._places.acquire(timeout=timeout_s):
            raise DatabaseUnavailable
        look = _Look(self._engine, work, timeout_s, self._places.release)
        look.start()
        return look.result(max(0.0, ends_at - time.monotonic()))


def _connect(dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
    # Known from its first moment: SQLAlchemy talks to the server before it hands out anything.
    driver = dialect.connect(*arguments, **named)
    look = threading.current_thread()
    if isinstance(look, _Look):
        look.hold(driver)
    return driver


class _Look(threading.Thread, Generic[T]):
    def __init__(
        self,
        engine: Engine,
        work: Callable[[Session], T],
        timeout_s: float,
        finished: Callable[[], None],
    ) -> None:
        super().__init__(name="database probe", daemon=True)
        self._engine = engine
        self._work = work
        self._timeout_s = timeout_s
        self._finished = finished
        self._lock = threading.Lock()
        self._driver: Any = None
        self._is_given_up = False
        self._results: list[T] = []
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            with self._engine.connect() as connection, Session(connection) as session:
                milliseconds = max(1, int(self._timeout_s * 1000))
                session.execute(text(f"SET LOCAL statement_timeout = {milliseconds}"))
                self._results.append(self._work(session))
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._finished()

    def result(self, timeout_s: float) -> T:
        self.join(timeout_s)
        if self.is_alive():
            self._give_up()
            raise DatabaseUnavailable
        if self._error is not None:
            raise self._error
        return self._results[0]

    def hold(self, driver: Any) -> None:
        """Remember the connection; not for one that nobody waits for any more."""
        with self._lock:
            self._driver = driver
            if self._is_given_up:
                driver.close()
                raise DatabaseUnavailable

    def _give_up(self) -> None:
        """End the connection under the thread, which then reads its end instead of waiting."""
        with self._lock:
            self._is_given_up = True
            if self._driver is None:
                return
            # It may have come to its end in this very moment.
            with (
                suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(self._driver.fileno())) as connection,
            ):
                connection.shutdown(socket.SHUT_RDWR)
