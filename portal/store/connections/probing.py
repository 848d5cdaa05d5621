"""Health queries with a deadline that holds even when the server does not answer.

When a server or a network stops responding, a client can block for long: a statement timeout is
enforced by the server, and the driver's shortest timeout for a new connection is two seconds. Code
that checks the health of the database must not block with it.
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

# Probes that run at once. While that many hang, another one would only hang as well.
_MAX_PROBES = 8
# The driver's minimum.
_CONNECT_TIMEOUT_S = 2


class Prober:
    """Runs read-only work in a thread and on its own connection. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            connect_args={"connect_timeout": _CONNECT_TIMEOUT_S, "prepare_threshold": None},
        )
        event.listen(self._engine, "do_connect", _connect)
        self._places = threading.BoundedSemaphore(_MAX_PROBES)

    def run(self, work: Callable[[Session], T], *, timeout_s: float) -> T:
        """Return the result of `work`, or raise its error. Raises DatabaseUnavailable if any step
        takes too long."""
        ends_at = time.monotonic() + timeout_s
        if not self._places.acquire(timeout=timeout_s):
            raise DatabaseUnavailable
        probe = _ProbeThread(self._engine, work, timeout_s, self._places.release)
        probe.start()
        return probe.result(max(0.0, ends_at - time.monotonic()))


def _connect(dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
    # Recorded as soon as it opens: SQLAlchemy queries the server before it returns a connection.
    driver = dialect.connect(*arguments, **named)
    thread = threading.current_thread()
    if isinstance(thread, _ProbeThread):
        thread.hold(driver)
    return driver


class _ProbeThread(threading.Thread, Generic[T]):
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
        """Remember the connection, unless the caller has stopped waiting."""
        with self._lock:
            self._driver = driver
            if self._is_given_up:
                driver.close()
                raise DatabaseUnavailable

    def _give_up(self) -> None:
        """Shut down the connection of the thread, whose read then ends at once."""
        with self._lock:
            self._is_given_up = True
            if self._driver is None:
                return
            # It may have closed just now.
            with (
                suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(self._driver.fileno())) as connection,
            ):
                connection.shutdown(socket.SHUT_RDWR)
