"""Statements of the search's, sent the shortest way.

A transaction with settings of its own costs four round trips: its begin, the settings, the
statement, its end. In the driver's pipeline all of that is one: until the pipeline is
synchronised, the server runs what it gets in one transaction, and settings that are local to it end
with it. What is asked for each search alike is prepared: the server reads and plans it once a
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from psycopg import Connection, RawCursor
from psycopg.pq import Format
from psycopg.rows import RowFactory
from sqlalchemy import TextClause
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

Row = TypeVar("Row")

Planner = Mapping[str, str | Callable[[], str]]
"""Settings of the server's for one statement: values, or what gives one when it is sent, such as
the time that is left by then."""

# The server's own way to number parameters, so that the driver need not look for them.
_DIALECT = postgresql.psycopg.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


def fetch(
    session: Session, clause: TextClause, binds: Mapping[str, Any], rows: RowFactory[Row]
) -> list[Row]:
    """All rows of a statement; of `binds` those that it has. The session must be one of
    `Database.read`, which translates what the driver raises as it does SQLAlchemy's errors."""
    statement, names = _compiled(clause)
    with _cursor(session, rows) as cursor:
        cursor.execute(statement, [binds[name] for name in names], prepare=True)
        return cursor.fetchall()


def fetch_under(
    session: Session,
    settings: Planner,
    clause: TextClause,
    binds: Mapping[str, Any],
    rows: RowFactory[Row],
) -> list[Row]:
    """`fetch` of a statement that is planned and run under `settings`."""
    statement, names = _compiled(clause)
    values = [value if isinstance(value, str) else value() for value in settings.values()]
    with _driver(session).pipeline(), _cursor(session, rows) as cursor:
        cursor.execute(_settings_statement(tuple(settings)), values, prepare=True)
        # pg_textsearch takes its fast path only where the words are a constant of the plan, which
        # they are not in a prepared statement: every row would be rescored.
        cursor.execute(statement, [binds[name] for name in names], prepare=False)
        return cursor.fetchall()


def _driver(session: Session) -> Connection[Any]:
    driver: Any = session.connection().connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _cursor(session: Session, rows: RowFactory[Row]) -> RawCursor[Row]:
    cursor = RawCursor(_driver(session), row_factory=rows)
    cursor.format = Format.BINARY  # Binary: no number or id is written out and read again.
    return cursor


@lru_cache(maxsize=512)
def _compiled(clause: TextClause) -> tuple[bytes, tuple[str, ...]]:
    """The statement as the server takes it, and its binds in their order."""
    compiled = clause.compile(dialect=_DIALECT)
    return str(compiled).encode(), tuple(compiled.positiontup or ())


@lru_cache(maxsize=16)
def _settings_statement(names: tuple[str, ...]) -> bytes:
    calls = (f"set_config('{name}', ${place}, true)" for place, name in enumerate(names, 1))
    return f"SELECT {', '.join(calls)}".encode()
