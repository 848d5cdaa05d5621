"""Connections to PostgreSQL: one engine per process and server, one transaction per use case."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from portal.errors import DatabaseUnavailable, WritingUnavailable
from portal.store.connections.failures import is_connection_lost, is_lock_timeout, portal_errors
from portal.store.connections.replicas import Replicas, State
from portal.store.connections.server import CONNECTING, Server, normalise_url

__all__ = ["Database", "Session", "is_connection_lost", "normalise_url"]

T = TypeVar("T")

_LOAD = "/proc/loadavg"
_LOCK_TIMEOUT_MS = 500
_LOCK_ATTEMPTS = 30
_LOCK_PAUSE_S = 0.2


class Database:
    """A source of sessions. Thread-safe; a forked child makes its own connections. With replicas,
    `enter_reading` lets the rest of a request read from one of them. While the primary is lost,
    `enter_request` does so for the whole request, and writing raises WritingUnavailable."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pool_timeout_s: float = 5.0,
        statement_timeout_s: float | None = None,
        shares_connections: bool = False,
        replica_urls: Sequence[str] = (),
        replica_wait_s: float = 0.1,
        outage_s: float = 3600.0,
    ) -> None:
        """Connect lazily. After `statement_timeout_s` a session's statement ends in
        DatabaseUnavailable, unless it sets its own timeout. With `shares_connections` each
        transaction may run on another connection to the server, as behind PgBouncer in transaction
        mode: nothing is prepared or set for longer than a transaction. `replica_wait_s` and
        `outage_s` are those of `Replicas`."""
        primary, *others = (
            Server(
                server_url,
                pool_size=pool_size,
                pool_timeout_s=pool_timeout_s,
                statement_timeout_s=statement_timeout_s,
                shares_connections=shares_connections,
            )
            for server_url in (url, *replica_urls)
        )
        self._primary = primary
        self._shares_connections = shares_connections
        self._replicas = (
            Replicas(primary, others, wait_s=replica_wait_s, outage_s=outage_s) if others else None
        )
        self._all = (primary, *others)
        # The replica that the current request reads from.
        self._chosen: ContextVar[Server | None] = ContextVar("replica", default=None)

    @property
    def url(self) -> str:
        """Return the primary's address."""
        return self._primary.url

    @property
    def engine(self) -> Engine:
        """Return the primary's engine."""
        return self._primary.engine

    @property
    def conninfo(self) -> str:
        """Return libpq's connection string of the primary, for clients that do not use
        SQLAlchemy."""
        return self._primary.conninfo

    # --- which server -----------------------------------------------------------------------

    def watch(self) -> None:
        """Watch the servers from now on, if there are replicas."""
        if self._replicas is not None:
            self._replicas.watch()

    def enter_request(self) -> None:
        """Choose the server of a request: the primary or, while that is lost, a replica."""
        self._chosen.set(self._fallback() if self.is_primary_lost else None)

    def enter_reading(self) -> None:
        """Let the rest of a request, which only reads, read from a replica that has everything that
        the primary has written by now. Raises DatabaseUnavailable."""
        if self._replicas is None or self._chosen.get() is not None:
            return
        try:
            self._chosen.set(self._replicas.choose())
        except DatabaseUnavailable:
            self._replicas.mark_lost(self._primary)
            self.enter_request()
            if self._chosen.get() is None:
                raise

    def leave_request(self) -> None:
        self._chosen.set(None)

    @contextmanager
    def ranking_words(self) -> Iterator[None]:
        """Read from the primary if only the primary has a keyword index, and it is not lost."""
        if self.replicates_bm25 or self.is_primary_lost:
            yield
            return
        with self.on_primary():
            yield

    @contextmanager
    def on_primary(self) -> Iterator[None]:
        """Use the primary in a request that otherwise only reads, to write what it must record."""
        chosen = self._chosen.get()
        self._chosen.set(None)
        try:
            yield
        finally:
            self._chosen.set(chosen)

    @property
    def is_primary_lost(self) -> bool:
        """Return whether there are replicas and the primary does not answer, so that nothing can be
        written."""
        return self._replicas is not None and self._replicas.is_primary_lost

    @property
    def can_write(self) -> bool:
        """Return whether the current request may write: not if it reads from a replica or the
        primary is lost."""
        return self._chosen.get() is None and not self.is_primary_lost

    @property
    def replica_states(self) -> list[tuple[State, int | None]]:
        """Return for each replica of the settings its state and how many bytes it is behind."""
        return self._replicas.states() if self._replicas is not None else []

    @property
    def replicates_bm25(self) -> bool:
        """Return whether replicas have the keyword index that ranks by BM25."""
        return self._replicas is not None and self._replicas.replicates_bm25

    def _fallback(self) -> Server | None:
        return self._replicas.find_fallback() if self._replicas is not None else None

    @contextmanager
    def _server(self) -> Iterator[Server]:
        """Yield the server of this request, and translate the errors of its use."""
        server = self._chosen.get() or self._primary
        try:
            with portal_errors():
                yield server
        except DatabaseUnavailable as error:
            if self._replicas is not None and is_connection_lost(error.__cause__):
                self._replicas.mark_lost(server)
            raise

    # --- sessions and connections -----------------------------------------------------------

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """Open a session in one transaction: committed at the end, rolled back on any error.

        Raises DatabaseUnavailable when there is no server or no free connection, and for errors
        that may not occur on a retry; WritingUnavailable when nothing can be written; StorageFull
        when the server's disk is full.
        """
        with self._server() as server, server.sessions.begin() as session:
            yield session

    def with_lock_retries(self, action: Callable[[Session], T]) -> T:
        """Run a transaction that needs exclusive locks on tables for a moment. A lock that is not
        granted at once is given up and retried, because a waiting lock blocks every search behind
        it. Raises DatabaseUnavailable when it is never granted."""
        for attempt in range(1, _LOCK_ATTEMPTS + 1):
            try:
                with self.begin() as session:
                    session.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_MS}ms'"))
                    return action(session)
            except DatabaseUnavailable as error:
                if attempt == _LOCK_ATTEMPTS or not is_lock_timeout(error):
                    raise
                time.sleep(_LOCK_PAUSE_S)
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session without a transaction, for read-only statements: each stands alone and
        costs one round trip, where a transaction's begin and end cost two more. Raises
        DatabaseUnavailable as `begin` does."""
        with self._server() as server, server.readers() as session:
            yield session

    @contextmanager
    def driver(self) -> Iterator[psycopg.Connection[Any]]:
        """Take a driver connection from the pool, without a session or a transaction, for
        `store.statements`, where each statement stands alone. Raises as `begin` does."""
        with self._server() as server, server.driver() as driver:
            yield driver

    @contextmanager
    def spare_driver(self) -> Iterator[psycopg.Connection[Any] | None]:
        """Take a second connection besides one of `driver`, to run two statements at once. Yields
        None when all connections, or the processor's cores, are in use."""
        server = self._chosen.get() or self._primary
        pool: Any = server.engine.pool
        is_busy = pool.checkedout() >= server.pool_size or _lacks_cores()
        if is_busy or not server.spare_slots.acquire(blocking=False):
            yield None
            return
        try:
            with self.driver() as connection:
                yield connection
        finally:
            server.spare_slots.release()

    @contextmanager
    def hold(self, lock: int, name: str) -> Iterator[bool]:
        """Try to take the advisory lock of this name, held until the end; yield whether it was
        free.

        Uses its own connection, outside the pool: a lock that is held for long must not use up
        the pool's connections. The server releases it when the process dies. Raises
        DatabaseUnavailable.
        """
        if self.is_primary_lost:
            raise WritingUnavailable
        # A session's lock would outlive its owner on a connection that a pooler passes on.
        kind = "_xact" if self._shares_connections else ""
        query = f"SELECT pg_try_advisory{kind}_lock(hashtextextended(%s, %s))"
        server = make_conninfo(self.conninfo, **CONNECTING)
        is_alone = not self._shares_connections
        with portal_errors(), psycopg.connect(server, autocommit=is_alone) as connection:
            row = connection.execute(query, (name, lock), prepare=False).fetchone()
            try:
                yield bool(row and row[0])
            finally:
                # The server notices only a moment later that a connection was closed.
                if is_alone:
                    with suppress(psycopg.Error):
                        connection.execute("SELECT pg_advisory_unlock_all()")

    def probe(self, work: Callable[[Session], T], *, timeout_s: float) -> T:
        """Return what `work` reads, or raise DatabaseUnavailable after `timeout_s`, even if the
        server or the network does not respond. Asks a replica while the primary is lost."""
        server = (self._fallback() if self.is_primary_lost else None) or self._primary
        with portal_errors():
            return server.prober.run(work, timeout_s=timeout_s)

    def dispose(self) -> None:
        if self._replicas is not None:
            self._replicas.stop()
        for server in self._all:
            server.engine.dispose()


def _lacks_cores() -> bool:
    """Return whether at least as many other threads are ready to run as there are cores."""
    # Read from the kernel: the average of the last minute stays high after the work has ended.
    try:
        with open(_LOAD, "rb", buffering=0) as file:  # noqa: PTH123 - each search asks
            running, _, _ = file.read().split()[3].partition(b"/")
    except OSError:  # Not Linux.
        return False
    return int(running) > (os.cpu_count() or 1)
