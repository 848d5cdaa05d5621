"""Statements in a pipeline, and what a connection keeps prepared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from sqlalchemy import TextClause, text

from portal.errors import DatabaseUnavailable
from portal.store.connections import pipeline
from portal.store.session import Database, is_connection_lost
from portal.store.statements import Statement, fetch, fetch_named, sending
from tests.conftest import Portal

ONE, TWO, WRONG = text("SELECT 1"), text("SELECT 2 AS number"), text("SELECT 1 / 0")
COUNT = text("SELECT count(*) FROM pg_prepared_statements")


@pytest.fixture
def database(portal: Portal) -> Iterator[Database]:
    database = Database(portal.services.database.url, pool_size=1)
    yield database
    database.dispose()


def test_statements_are_prepared_unless_connections_are_shared(portal: Portal) -> None:
    for shares in (False, True):
        database = Database(portal.services.database.url, shares_connections=shares)
        with database.driver() as reader:
            for _ in range(2):
                assert fetch(reader, ONE, {}) == [(1,)]
            assert fetch(reader, COUNT, {}) == [(0 if shares else 2,)]
        database.dispose()


def test_rows_are_named_by_their_columns(database: Database) -> None:
    with database.driver() as reader:
        assert [row.number for row in fetch_named(reader, TWO, {})] == [2]


def test_settings_apply_only_to_their_own_statements(database: Database) -> None:
    setting = text("SELECT current_setting('enable_hashjoin')")
    with database.driver() as reader:
        asked = [Statement(setting, {}), Statement(setting, {}, keeps_plan=True)]
        with sending(reader, {"enable_hashjoin": "off"}, asked) as found:
            pass
        assert found == [[("off",)], [("off",)]]
        assert fetch(reader, setting, {}) == [("on",)]


@pytest.mark.parametrize("place", [0, 1])
def test_connection_stays_usable_after_a_failed_statement(database: Database, place: int) -> None:
    asked = [Statement(ONE, {}, keeps_plan=True), Statement(TWO, {}, keeps_plan=True)]
    asked.insert(place, Statement(WRONG, {}, keeps_plan=True))
    with database.driver() as reader:
        with pytest.raises(psycopg.errors.DivisionByZero), sending(reader, {}, asked):
            pass
        with pytest.raises(ValueError, match="besides"), sending(reader, {}, asked):
            raise ValueError("besides")
        assert fetch(reader, ONE, {}) == [(1,)]
        assert fetch(reader, TWO, {}) == [(2,)]


def test_statements_before_a_failed_one_are_prepared_once(database: Database) -> None:
    asked = [Statement(one, {}, keeps_plan=True) for one in (ONE, WRONG)]
    with database.driver() as reader:
        for _ in range(3):
            with pytest.raises(psycopg.errors.DivisionByZero), sending(reader, {}, asked):
                pass
        # Prepared are the settings and the three statements.
        assert fetch(reader, COUNT, {}) == [(4,)]


def test_value_that_cannot_be_sent_leaves_the_connection_usable(database: Database) -> None:
    with database.driver() as reader:
        with pytest.raises(psycopg.DataError):
            fetch(reader, text("SELECT CAST(:value AS text)"), {"value": "\0"})
        assert fetch(reader, ONE, {}) == [(1,)]


def test_no_more_statements_than_the_maximum_are_prepared(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_MAX_PREPARED", 3)
    with database.driver() as reader:
        for number in (*range(5), *range(5)):
            assert fetch(reader, text(f"SELECT {number}"), {}) == [(number,)]
        assert 0 < fetch(reader, COUNT, {})[0][0] <= 3


@pytest.fixture
def migrated(portal: Portal) -> Iterator[TextClause]:
    """Yield a statement on a table of one integer column."""
    portal.execute("CREATE TABLE migrated AS SELECT 1 AS number")
    yield text("SELECT number FROM migrated")
    portal.execute("DROP TABLE migrated")


def test_statement_is_prepared_again_after_a_migration_changed_its_columns(
    database: Database, portal: Portal, migrated: TextClause
) -> None:
    """Connections outlive a migration while the previous version of the portal keeps serving."""
    asked = [Statement(one, {}, keeps_plan=True) for one in (ONE, migrated)]
    with database.driver() as reader:
        for kind in ("integer", "bigint", "text"):
            portal.execute(f"ALTER TABLE migrated ALTER COLUMN number TYPE {kind}")
            with sending(reader, {}, asked) as found:
                pass
            assert found == [[(1,)], [("1" if kind == "text" else 1,)]]
            assert len(fetch(reader, migrated, {})) == 1
        # Prepared are the settings, the two statements and the count.
        assert fetch(reader, COUNT, {}) == [(4,)]


@pytest.mark.parametrize(("gives_up", "written"), [(False, 1), (True, 0)])
def test_repeated_pipeline_writes_once_or_not_at_all(
    database: Database, portal: Portal, migrated: TextClause, gives_up: bool, written: int
) -> None:
    portal.execute("CREATE TABLE written (number int)")
    write = text("INSERT INTO written VALUES (1) RETURNING number")
    asked = [Statement(one, {}, keeps_plan=True) for one in (write, migrated)]
    try:
        with database.driver() as reader:
            assert fetch(reader, migrated, {}) == [(1,)]
            portal.execute("ALTER TABLE migrated ALTER COLUMN number TYPE bigint")
            with suppress(ValueError), sending(reader, {}, asked):
                if gives_up:
                    raise ValueError
            assert fetch(reader, text("SELECT count(*) FROM written"), {}) == [(written,)]
    finally:
        portal.execute("DROP TABLE written")


def test_transaction_broken_by_a_migration_is_not_partly_repeated(
    database: Database, portal: Portal, migrated: TextClause
) -> None:
    with database.driver() as reader:
        assert fetch(reader, migrated, {}) == [(1,)]
    portal.execute("ALTER TABLE migrated ALTER COLUMN number TYPE bigint")

    def read() -> None:
        with database.begin() as session:
            session.execute(text("CREATE TEMPORARY TABLE begun ()"))
            fetch(session, migrated, {})

    with pytest.raises(psycopg.errors.FeatureNotSupported):
        read()
    with database.driver() as reader:
        assert fetch(reader, migrated, {}) == [(1,)]
        assert fetch(reader, text("SELECT to_regclass('begun')"), {}) == [(None,)]


@pytest.mark.parametrize("ends_inside", [False, True])
def test_lost_connection_is_reported_and_replaced(
    database: Database, portal: Portal, *, ends_inside: bool
) -> None:
    """It is reported as the driver's own cursors do, so that a request is retried."""

    def lose() -> None:
        with database.driver() as reader:
            ((process,),) = fetch(reader, text("SELECT pg_backend_pid()"), {})
            if ends_inside:
                fetch(reader, text(f"SELECT pg_terminate_backend({process})"), {})
            portal.execute(f"SELECT pg_terminate_backend({process}, 10000)")
            fetch(reader, ONE, {})

    with pytest.raises(DatabaseUnavailable) as lost:
        lose()
    cause = lost.value.__cause__
    assert isinstance(cause, psycopg.Error)
    assert is_connection_lost(cause)
    with database.driver() as reader:
        assert fetch(reader, ONE, {}) == [(1,)]


def test_interrupted_wait_closes_the_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next statement would read the results of this one."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with database.driver() as reader, monkeypatch.context() as patch:
        patch.setattr(pipeline.generators, "fetch_many", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(reader, ONE, {})
        assert reader.closed
    with database.driver() as reader:
        assert fetch(reader, TWO, {}) == [(2,)]


def test_failed_statement_of_a_session_rolls_its_transaction_back(database: Database) -> None:
    def fail() -> None:
        with database.begin() as session:
            session.execute(text("CREATE TEMPORARY TABLE begun ()"))
            assert fetch(session, ONE, {}) == [(1,)]
            fetch(session, WRONG, {})

    with pytest.raises(psycopg.errors.DivisionByZero):
        fail()
    with database.begin() as session:
        assert fetch(session, text("SELECT to_regclass('begun')"), {}) == [(None,)]


def test_driver_does_not_deallocate_prepared_statements(database: Database) -> None:
    with database.driver() as reader:
        assert fetch(reader, ONE, {}) == [(1,)]
        reader.cursor().executemany("SELECT %s", [(1,), (2,)])
        reader.rollback()
        assert fetch(reader, ONE, {}) == [(1,)]


def test_transaction_that_was_left_open_ends_with_the_connection(database: Database) -> None:
    with database.driver() as reader:
        reader.execute("CREATE TEMPORARY TABLE left_open ()")
    with database.driver() as reader:
        assert fetch(reader, text("SELECT to_regclass('left_open')"), {}) == [(None,)]
