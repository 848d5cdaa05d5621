"""Connections to PostgreSQL: one engine a process, one transaction a use case."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Semaphore
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import PipelineAborted
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from portal.errors import DatabaseUnavailable, InvalidToken, StorageFull
from portal.observability import metrics
from portal.store.binary_parameters import send_binary
from portal.store.probing import Prober

__all__ = ["Database", "Session", "is_connection_lost", "is_lock_timeout", "normalise_url"]

T = TypeVar("T")

# SQLSTATE classes and codes, PostgreSQL manual, appendix A.
_DISK_FULL = "53100"
_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_RESOURCES = "53"
_QUERY_CANCELED = "57014"
_FOREIGN_KEY_VIOLATION = "23503"
# Columns that refer to `users`, as they appear in constraint names.
_USER_COLUMNS = ("_user_id", "_owner_id", "_uploaded_by", "_created_by", "_updated_by")
# Errors caused by concurrent transactions: a deadlock, a serialization failure, a lock timeout.
_ROLLED_BACK = "40"
_LOCK_NOT_AVAILABLE = "55P03"
_CONNECTION_LOST = ("08", "57P")
_DEFAULT_PORT = "5432"
# A server that stopped responding is noticed within a minute.
_CONNECTING = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def normalise_url(url: str) -> str:
    """Return the URL with the portal's driver, for any form that the operator may write."""
    for scheme in ("postgresql+psycopg://", "postgresql://", "postgres://"):
        if url.startswith(scheme):
            rest = url.removeprefix(scheme)
            return _of_several_hosts(f"postgresql://{rest}") or f"postgresql+psycopg://{rest}"
    return url


def _of_several_hosts(url: str) -> str | None:
    """Return libpq's URL of several hosts as SQLAlchemy takes it; None for any other."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return None
    hosts = str(parts.pop("host", "") or "").split(",")
    if len(hosts) == 1:
        return None
    ports = str(parts.pop("port", "") or _DEFAULT_PORT).split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    named = {name: str(parts.pop(name, "")) or None for name in ("user", "password", "dbname")}
    query = {"host": ",".join(hosts), "port": ",".join(port or _DEFAULT_PORT for port in ports)}
    query |= {name: str(value) for name, value in parts.items()}
    return URL.create(
        "postgresql+psycopg",
        username=named["user"],
        password=named["password"],
        database=named["dbname"],
        query=query,
    ).render_as_string(hide_password=False)


class Database:
    """A source of sessions. Thread-safe, but not usable across a fork."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        pool_timeout_s: float = 5.0,
        statement_timeout_s: float | None = None,
        shares_connections: bool = False,
    ) -> None:
        """Connect lazily. After `statement_timeout_s` a session's statement ends in
        DatabaseUnavailable, unless it sets a timeout of its own. With `shares_connections` each
        transaction may run on another connection to the server, as behind PgBouncer in transaction
        mode: nothing is prepared or set for longer than a transaction."""
        self.url = normalise_url(url)
        self.engine: Engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout_s,
            # Only `store.statements` prepares statements: others are rare, or of many shapes.
            connect_args={
                "prepare_threshold": None if shares_connections else sys.maxsize,
                **_CONNECTING,
            },
        )
        # Registered per engine: an engine copies the types that are registered globally when it is
        # made.
        event.listen(self.engine, "connect", lambda driver, _record: send_binary(driver))
        # The pooler has to set the timeout (docs/operations.md): it may give each statement another
        # connection.
        if statement_timeout_s is not None and not shares_connections:
            limit = f"SET statement_timeout = {round(statement_timeout_s * 1000)}"
            event.listen(self.engine, "connect", lambda driver, _record: _say(driver, limit))
        event.listen(self.engine, "checkout", _check_alive)
        event.listen(self.engine, "checkout", _count_taken)
        event.listen(self.engine, "reset", _end_autocommit)
        event.listen(self.engine, "checkin", _count_given_back)
        # Fewer than the pool has, so that threads that wait for a second one cannot hold all.
        self._pool_size = pool_size
        self._shares_connections = shares_connections
        self._spare = Semaphore(min(os.cpu_count() or 1, pool_size) // 2)
        self._prober = Prober(self.url)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)
        alone = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._readers = sessionmaker(alone, expire_on_commit=False)

    @property
    def conninfo(self) -> str:
        """Return libpq's connection string of the server, for clients that do not use
        SQLAlchemy."""
        url = make_url(self.url)
        parts = {
            "host": url.host,
            "port": url.port,
            "user": url.username,
            "password": url.password,
            "dbname": url.database,
        }
        parts |= {name: value for name, value in url.query.items() if isinstance(value, str)}
        return make_conninfo("", **{k: v for k, v in parts.items() if v is not None})

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """Open a session in one transaction: committed at the end, rolled back on any error.

        Raises DatabaseUnavailable when there is no server or no free connection, and for errors
        that may not occur on a retry; StorageFull when the server's disk is full.
        """
        with _portal_errors(), self._sessions.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session without a transaction, for read-only statements: each stands alone and
        costs one round trip, where a transaction's begin and end cost two more.

        Raises DatabaseUnavailable as `begin` does.
        """
        with _portal_errors(), self._readers() as session:
            yield session

    @contextmanager
    def driver(self) -> Iterator[psycopg.Connection[Any]]:
        """Take a driver connection from the pool, without a session or a transaction, for
        `store.statements`, where each statement stands alone. Raises as `begin` does."""
        with _portal_errors(), closing(self.engine.raw_connection()) as pooled:
            driver: Any = pooled.driver_connection
            driver.autocommit = True  # Undone when the pool takes it back.
            yield driver

    @contextmanager
    def spare(self) -> Iterator[psycopg.Connection[Any] | None]:
        """Take a second connection beside one of `driver`, to run two statements at once. Yields
        None when all connections, or the processor's cores, are in use."""
        pool: Any = self.engine.pool
        is_busy = pool.checkedout() >= self._pool_size or _lacks_cores()
        if is_busy or not self._spare.acquire(blocking=False):
            yield None
            return
        try:
            with self.driver() as connection:
                yield connection
        finally:
            self._spare.release()

    @contextmanager
    def hold(self, lock: int, name: str) -> Iterator[bool]:
        """Try to take the advisory lock of this name, held until the end; yield whether it was
        free.

        On a connection of its own, outside the pool: a lock that is held for long must not use up
        the pool's connections. The server releases it when the process dies. Raises
        DatabaseUnavailable.
        """
        # A session's lock would outlive its owner on a connection that a pooler passes on.
        kind = "_xact" if self._shares_connections else ""
        query = f"SELECT pg_try_advisory{kind}_lock(hashtextextended(%s, %s))"
        server = make_conninfo(self.conninfo, **_CONNECTING)
        is_alone = not self._shares_connections
        with _portal_errors(), psycopg.connect(server, autocommit=is_alone) as connection:
            row = connection.execute(query, (name, lock), prepare=False).fetchone()
            yield bool(row and row[0])

    def answers(self) -> bool:
        """Tell whether the server answers a trivial query."""
        try:
            with self.engine.connect() as connection:
                return connection.execute(text("SELECT 1")).scalar() == 1
        except (OperationalError, PoolTimeout):
            return False

    def probe(self, work: Callable[[Session], T], *, timeout_s: float) -> T:
        """Return what `work` reads, or raise DatabaseUnavailable after that time, even where the
        server or the network does not respond."""
        with _portal_errors():
            return self._prober.run(work, timeout_s=timeout_s)

    def dispose(self) -> None:
        self.engine.dispose()


def _lacks_cores() -> bool:
    """Tell whether as many processes as there are cores ran during the last minute."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] >= (os.cpu_count() or 1)


def _say(driver: Any, statement: str) -> None:
    driver.execute(statement)
    driver.commit()


@contextmanager
def _portal_errors() -> Iterator[None]:
    """Translate errors of SQLAlchemy, and of the driver itself below `store.statements`."""
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailable from error
    except (DBAPIError, psycopg.Error) as error:
        cause = _of_driver(error)
        state = getattr(cause, "sqlstate", None) or ""
        if state == _DISK_FULL or _is_out_of_room(cause):
            raise StorageFull from error
        if state == _FOREIGN_KEY_VIOLATION and _names_user(cause):
            # The account was deleted after the request was authenticated.
            raise InvalidToken from error
        if not isinstance(error, (OperationalError, psycopg.OperationalError)):
            raise
        if _passes(state) or is_connection_lost(error):
            raise DatabaseUnavailable from error
        raise


def _names_user(cause: BaseException | None) -> bool:
    constraint = cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
    return bool(constraint) and str(constraint).endswith(_USER_COLUMNS)


def _passes(state: str) -> bool:
    """Tell whether a retry may succeed, for example after a shortage of memory or connections."""
    return state in (_QUERY_CANCELED, _LOCK_NOT_AVAILABLE) or state.startswith(
        (_ROLLED_BACK, _NO_RESOURCES)
    )


def is_lock_timeout(error: DatabaseUnavailable) -> bool:
    """Tell whether a session failed because a lock was not granted within its `lock_timeout`."""
    cause = error.__cause__
    driver = _of_driver(cause) if isinstance(cause, (DBAPIError, psycopg.Error)) else None
    return isinstance(driver, psycopg.Error) and driver.sqlstate == _LOCK_NOT_AVAILABLE


def _is_out_of_room(cause: BaseException | None) -> bool:
    """Tell whether the server could not write a file."""
    # A disk quota, or a limit on the size of files, is an internal error to the server, and only
    # the operating system's message identifies it.
    said = cause.diag.message_primary if isinstance(cause, psycopg.Error) else None
    return bool(said) and str(said).endswith(_NO_ROOM)


def is_connection_lost(error: DBAPIError | psycopg.Error) -> bool:
    """Tell whether the server is gone, as opposed to an error that it reported."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    cause = _of_driver(error)
    # Statements after the one that failed in a pipeline have no SQLSTATE either.
    if not isinstance(cause, psycopg.OperationalError) or isinstance(cause, PipelineAborted):
        return False
    # The driver reports nothing else about a connection that breaks.
    return cause.sqlstate is None or cause.sqlstate.startswith(_CONNECTION_LOST)


def _of_driver(error: DBAPIError | psycopg.Error) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else error


def _check_alive(driver: Any, _record: Any, _fairy: Any) -> None:
    """Reject a pooled connection that its server has closed; the pool then makes another."""
    # An idle connection has nothing to read, except that it was closed, or why. A query to the
    # server instead would cost each use case a round trip.
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    if driver.closed or poll.poll(0):
        raise DisconnectionError


def _end_autocommit(driver: Any, _record: Any, _state: Any) -> None:
    if driver.autocommit:
        driver.autocommit = False


def _count_taken(_driver: Any, record: Any, _fairy: Any) -> None:
    record.record_info["is_counted"] = True
    metrics.connection_taken(1)


def _count_given_back(_driver: Any, record: Any) -> None:
    # A connection that could not be opened is returned to the pool without having been taken.
    if record.record_info.pop("is_counted", False):
        metrics.connection_taken(-1)
