"""Pooled connections to one server."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Semaphore
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import sessionmaker

from portal.observability import metrics
from portal.store.binary_parameters import send_binary
from portal.store.connections import forks
from portal.store.connections.failures import portal_errors
from portal.store.connections.pipeline import keep_prepared
from portal.store.connections.probing import Prober
from portal.store.connections.replicas import Sample, read_sample

_DEFAULT_PORT = "5432"
# A server that stopped responding is noticed within a minute.
CONNECTING = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def normalise_url(url: str) -> str:
    """Return the URL with the portal's driver, for any form that an operator may use."""
    for scheme in ("postgresql+psycopg://", "postgresql://", "postgres://"):
        if url.startswith(scheme):
            rest = url.removeprefix(scheme)
            return _of_several_hosts(f"postgresql://{rest}") or f"postgresql+psycopg://{rest}"
    return url


def _of_several_hosts(url: str) -> str | None:
    """Return a libpq URL with several hosts in SQLAlchemy's form; None for any other URL."""
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


class Server:
    """Pooled connections to one server, or to whichever of several is the primary."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        pool_timeout_s: float,
        statement_timeout_s: float | None,
        shares_connections: bool,
    ) -> None:
        self.url = normalise_url(url)
        self.engine: Engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout_s,
            pool_reset_on_return=None,  # See `_end_transaction`.
            # Only `store.statements` prepares statements: others are rare, or of many shapes.
            connect_args={"prepare_threshold": None, **CONNECTING},
        )
        if not shares_connections:
            event.listen(self.engine, "connect", lambda driver, _record: keep_prepared(driver))
        # Registered per engine: an engine copies the types that are registered globally when it is
        # made.
        event.listen(self.engine, "connect", lambda driver, _record: send_binary(driver))
        # With shared connections, the pooler has to set the timeout (docs/cluster.md): it may run
        # each statement on another connection.
        if statement_timeout_s is not None and not shares_connections:
            limit = f"SET statement_timeout = {round(statement_timeout_s * 1000)}"
            event.listen(
                self.engine, "connect", lambda driver, _record: _execute_committed(driver, limit)
            )
        event.listen(self.engine, "checkout", _check_alive)
        event.listen(self.engine, "checkout", _count_taken)
        event.listen(self.engine, "reset", _end_transaction)
        event.listen(self.engine, "checkin", _count_returned)
        # Fewer spare connections than the pool has, so that threads that wait for a second one
        # cannot hold all.
        self.pool_size = pool_size
        self.spare_slots = self._count_spare_slots()
        self.prober = Prober(self.url)
        self.sessions = sessionmaker(self.engine, expire_on_commit=False)
        alone = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self.readers = sessionmaker(alone, expire_on_commit=False)
        forks.watch(self)

    def _count_spare_slots(self) -> Semaphore:
        return Semaphore(min(os.cpu_count() or 1, self.pool_size) // 2)

    @property
    def conninfo(self) -> str:
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
    def driver(self) -> Iterator[psycopg.Connection[Any]]:
        with closing(self.engine.raw_connection()) as pooled:
            driver: Any = pooled.driver_connection
            yield driver

    def sample(self) -> Sample:
        """Ask for the server's role and position. Raises DatabaseUnavailable."""
        with portal_errors(), self.driver() as connection:
            return read_sample(lambda statement: connection.execute(statement).fetchone())

    def discard_connections(self) -> None:
        self.engine.dispose()

    def after_fork_in_child(self) -> None:
        self.engine.dispose(close=False)
        self.spare_slots = self._count_spare_slots()
        self.prober = Prober(self.url)


def _execute_committed(driver: Any, statement: str) -> None:
    driver.execute(statement)
    driver.commit()


def _check_alive(driver: Any, record: Any, _fairy: Any) -> None:
    """Reject a pooled connection that its server has closed; the pool then opens another. Raises
    OperationalError if that one is closed as well: a server or pooler is shutting down."""
    was_pooled, record.info["was_pooled"] = record.info.get("was_pooled", False), True
    # An idle connection has nothing to read, except that it was closed, or why. A query to the
    # server instead would cost each use case a round trip.
    if driver.closed or _can_be_read(driver):
        raise DisconnectionError if was_pooled else psycopg.OperationalError("closed at once")


def _can_be_read(driver: Any) -> bool:
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _end_transaction(driver: Any, _record: Any, _state: Any) -> None:
    # Usually there is none, and rolling back nothing takes as long as taking a connection.
    if driver.info.transaction_status != TransactionStatus.IDLE:
        driver.rollback()


def _count_taken(_driver: Any, record: Any, _fairy: Any) -> None:
    record.record_info["is_counted"] = True
    metrics.connection_taken(1)


def _count_returned(_driver: Any, record: Any) -> None:
    # A connection that could not be opened is returned to the pool without having been taken.
    if record.record_info.pop("is_counted", False):
        metrics.connection_taken(-1)
