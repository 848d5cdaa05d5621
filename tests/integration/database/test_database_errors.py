"""Failed statements raise the portal's own errors, on every path to the server."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from flask.testing import FlaskClient
from psycopg import Connection
from psycopg.errors import DivisionByZero
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from portal.errors import DatabaseUnavailable, StorageFull
from portal.services.search import engine
from portal.store import session as session_store
from portal.store.search.legs import finding as search_store
from portal.store.session import Database
from portal.store.statements import fetch, fetch_under
from tests.conftest import Portal

Send = Callable[[Session, str], object]


def by_sqlalchemy(session: Session, statement: str) -> object:
    return session.execute(text(statement)).scalars().all()


def by_driver(session: Session, statement: str) -> object:
    return [value for (value,) in fetch(session, text(statement), {})]


def in_pipeline(session: Session, statement: str) -> object:
    rows = fetch_under(session, {"enable_hashjoin": "off"}, text(statement), {})
    return [value for (value,) in rows]


WAYS = [by_sqlalchemy, by_driver, in_pipeline]

END = "SELECT pg_terminate_backend(pg_backend_pid())"
OUT_OF_MEMORY = "DO $$ BEGIN RAISE 'out of memory' USING ERRCODE = '53200'; END $$"
QUOTA_OF_THE_SYSTEM = (
    "DO $$ BEGIN RAISE 'could not extend file \"base/1/2\": Disk quota exceeded' "
    "USING ERRCODE = 'internal_error'; END $$"
)
OTHERS_IN_THE_WAY = [
    f"DO $$ BEGIN RAISE 'of others' USING ERRCODE = '{code}'; END $$"
    for code in (
        "deadlock_detected", "serialization_failure", "lock_not_available",
        "idle_in_transaction_session_timeout", "transaction_timeout",
    )
]  # fmt: skip
DISK_FULL = "DO $$ BEGIN RAISE 'no space left on device' USING ERRCODE = 'disk_full'; END $$"


@pytest.fixture
def database(portal: Portal) -> Database:
    return portal.services.database


@pytest.mark.parametrize("send", WAYS)
def test_connection_ended_by_the_server_is_reported_as_unavailable(
    database: Database, send: Send
) -> None:
    with pytest.raises(DatabaseUnavailable), database.read() as session:
        send(session, END)
    with database.read() as session:
        assert send(session, "SELECT 1") == [1]


@pytest.mark.parametrize("send", WAYS)
def test_connection_cut_between_statements_is_reported_as_unavailable(
    database: Database, send: Send
) -> None:
    def send_over_what_was_cut(session: Session) -> None:
        _cut(database, session)
        send(session, "SELECT 1")

    with pytest.raises(DatabaseUnavailable), database.read() as session:
        send_over_what_was_cut(session)
    with database.read() as session:
        assert send(session, "SELECT 1") == [1]


@pytest.mark.parametrize("failure", [None, KeyError])
def test_lock_is_released_before_the_server_notices_a_closed_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch, failure: type[Exception] | None
) -> None:
    unnoticed: list[Connection] = []

    def close(connection: Connection) -> None:
        unnoticed.append(connection)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "close", close)
        with contextlib.suppress(KeyError), database.hold(1, "name"):
            if failure is not None:
                raise failure
    with database.hold(1, "name") as is_free:
        assert is_free
    unnoticed[0].close()


def test_lock_on_an_unresponsive_server_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A frozen server still accepts connections but does not respond."""
    monkeypatch.setitem(session_store.CONNECTING, "connect_timeout", 2)  # libpq's minimum.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://portal@127.0.0.1:{silent.getsockname()[1]}/portal"
        with pytest.raises(DatabaseUnavailable), Database(url).hold(1, "name"):
            pass


@pytest.mark.parametrize("send", WAYS)
def test_statement_timeout_is_reported(database: Database, send: Send) -> None:
    def send_in_a_hurry(session: Session) -> None:
        session.execute(text("SET statement_timeout = '50ms'"))
        try:
            send(session, "SELECT pg_sleep(20)")
        finally:
            session.execute(text("RESET statement_timeout"))

    with pytest.raises(DatabaseUnavailable), database.read() as session:
        send_in_a_hurry(session)


@pytest.mark.parametrize("send", WAYS)
def test_full_disk_memory_shortage_and_conflicts_are_reported(
    database: Database, send: Send
) -> None:
    for full in (DISK_FULL, QUOTA_OF_THE_SYSTEM):
        with pytest.raises(StorageFull), database.read() as session:
            send(session, full)
    for passing in (OUT_OF_MEMORY, *OTHERS_IN_THE_WAY):
        with pytest.raises(DatabaseUnavailable), database.read() as session:
            send(session, passing)


def test_only_lock_timeouts_are_retried(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "_LOCK_TIMEOUT_MS", 20)
    monkeypatch.setattr(session_store, "_LOCK_PAUSE_S", 0.01)
    monkeypatch.setattr(session_store, "_LOCK_ATTEMPTS", 3)
    asked = 0

    def lock(session: Session) -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            holder.rollback()
        session.execute(text("LOCK TABLE users"))
        return "done"

    with database.begin() as holder:
        holder.execute(text("LOCK TABLE users"))
        assert database.with_lock_retries(lock) == "done"
    with database.begin() as holder:
        holder.execute(text("LOCK TABLE users"))
        with pytest.raises(DatabaseUnavailable):
            database.with_lock_retries(lock)
    assert asked == 6

    def deadlock(session: Session) -> None:
        nonlocal asked
        asked += 1
        session.execute(text(OTHERS_IN_THE_WAY[0]))

    with pytest.raises(DatabaseUnavailable):
        database.with_lock_retries(deadlock)
    assert asked == 7


@pytest.mark.parametrize("send", [by_driver, in_pipeline])
def test_invalid_statement_is_not_reported_as_an_outage(database: Database, send: Send) -> None:
    with pytest.raises(DivisionByZero), database.read() as session:
        send(session, "SELECT 1 / 0")


@pytest.mark.parametrize(("module", "name"), [(engine, "read_context"), (search_store, "sending")])
def test_search_whose_server_is_gone_is_a_503(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    portal.add("The office closes at six.")
    headers, body = portal.headers(), {"query": "office"}
    goes_on = getattr(module, name)

    def cut(reader: Connection[Any], *arguments: object, **named: object) -> object:
        _terminate(portal.services.database, reader.info.backend_pid)
        return goes_on(reader, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, cut)
        answer = client.post("/api/knowledge/search", json=body, headers=headers)
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "database_unavailable")
    assert client.post("/api/knowledge/search", json=body, headers=headers).status_code == 200


def _cut(database: Database, session: Session) -> None:
    """Terminate this session's connection from another one, as a restart of the server does."""
    _terminate(database, session.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _terminate(database: Database, pid: int) -> None:
    with database.begin() as other:
        other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


@pytest.mark.parametrize("way", [Database.begin, Database.read])
def test_statement_of_a_request_that_takes_too_long_is_ended(
    database_url: str, way: Callable[[Database], AbstractContextManager[Session]]
) -> None:
    database = Database(database_url, statement_timeout_s=0.1)
    with pytest.raises(DatabaseUnavailable), way(database) as session:
        session.execute(text("SELECT pg_sleep(30)"))
    with way(database) as session:
        assert session.scalar(text("SHOW statement_timeout")) == "100ms"
    database.dispose()


@pytest.mark.parametrize("send", WAYS)
def test_server_that_ends_new_connections_at_once_is_unavailable(
    portal: Portal, send: Send
) -> None:
    database = Database(portal.services.database.url)

    def end(driver: Connection, _record: object) -> None:
        with portal.services.database.driver() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [driver.info.backend_pid])
        select.select([driver.fileno()], [], [])

    event.listen(database.engine, "connect", end)
    with pytest.raises(DatabaseUnavailable), database.read() as session:
        send(session, "SELECT 1")
    event.remove(database.engine, "connect", end)
    with database.read() as session:
        assert send(session, "SELECT 1") == [1]
    database.dispose()


COMMITTED = b"C\0\0\0\x0bCOMMIT\0"
READY = b"Z\0\0\0\x05I"
CRASHED = b"E\0\0\0\x29SFATAL\0C08P01\0Mserver conn crashed?\0\0"


@contextlib.contextmanager
def pooler_whose_server_dies(path: str) -> Iterator[int]:
    """Yield the port of a pooler that loses its server when a transaction is committed."""

    def relay(client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(path)
            while readable := select.select([client, server], [], [])[0]:
                data = readable[0].recv(65536)
                (server if readable[0] is client else client).sendall(
                    data.replace(COMMITTED + READY, COMMITTED + CRASHED)
                )
                if not data or COMMITTED in data:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=lambda: relay(listening.accept()[0]), daemon=True).start()
        yield listening.getsockname()[1]


def test_server_that_dies_at_a_commit_is_unavailable(database: Database) -> None:
    with database.driver() as driver:
        info = driver.info
        path = f"{info.host}/.s.PGSQL.{info.port}"
    with pooler_whose_server_dies(path) as port:
        url = f"postgresql://{info.user}@127.0.0.1:{port}/{info.dbname}?sslmode=disable"
        pooled = Database(url, shares_connections=True)
        with pytest.raises(DatabaseUnavailable), pooled.begin() as session:
            session.execute(text("SELECT 1"))
        pooled.dispose()
