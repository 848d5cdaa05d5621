"""Statements in a pipeline, and what a connection keeps of them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import text

from portal.store.session import Database
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


def test_rows_come_under_the_names_of_their_columns(database: Database) -> None:
    with database.driver() as reader:
        assert [row.number for row in fetch_named(reader, TWO, {})] == [2]


def test_settings_end_with_the_statements_that_they_are_for(database: Database) -> None:
    setting = text("SELECT current_setting('enable_hashjoin')")
    with database.driver() as reader:
        asked = [Statement(setting, {}), Statement(setting, {}, keeps_plan=True)]
        with sending(reader, {"enable_hashjoin": "off"}, asked) as found:
            pass
        assert found == [[("off",)], [("off",)]]
        assert fetch(reader, setting, {}) == [("on",)]


@pytest.mark.parametrize("place", [0, 1])
def test_connection_is_used_again_after_a_statement_failed(database: Database, place: int) -> None:
    asked = [Statement(ONE, {}, keeps_plan=True), Statement(TWO, {}, keeps_plan=True)]
    asked.insert(place, Statement(WRONG, {}, keeps_plan=True))
    with database.driver() as reader:
        with pytest.raises(psycopg.errors.DivisionByZero), sending(reader, {}, asked):
            pass
        # What fails beside another error is as unprepared as what fails alone.
        with pytest.raises(ValueError, match="besides"), sending(reader, {}, asked):
            raise ValueError("besides")
        assert fetch(reader, ONE, {}) == [(1,)]
        assert fetch(reader, TWO, {}) == [(2,)]


def test_driver_does_not_deallocate_what_is_prepared(database: Database) -> None:
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
