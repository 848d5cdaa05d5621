"""Statements of a search or of a request's token, sent in as few round trips as possible.

A transaction with its own settings costs four round trips: its begin, the settings, the
statement, its end. In a pipeline all of that is one: until the pipeline is synchronised, the server
runs what it receives in one transaction, and settings that are local to it end with it.
Statements that are the same for each search are prepared: the server parses and plans them once per
connection.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import psycopg
from psycopg import Connection
from sqlalchemy import TextClause
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from portal.store.connections.pipeline import Pipeline
from portal.store.session import is_connection_lost

Row = tuple[Any, ...]

Reader = Session | Connection[Any]
"""The connection that statements are sent on: the driver's own during a search, where a session
would only cost time, or a session's."""

Planner = Mapping[str, str | Callable[[], str]]
"""Server settings for one statement: values, or functions that return one when it is sent, such as
the remaining time."""

_KEEPS = "force_generic_plan"

# The server's own parameter syntax, which saves the driver from converting it.
_DIALECT = postgresql.psycopg.dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]


class StatementFailed(Exception):
    """A statement of a search failed: an index is broken, an extension is missing, or time ran
    out."""


@contextmanager
def statement_failures() -> Iterator[None]:
    """Raise StatementFailed for errors of the driver, unless the connection is lost."""
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:
        if is_connection_lost(error):
            raise
        raise StatementFailed from error


class Statement(NamedTuple):
    """A statement with its `binds`, which may include others. With `keeps_plan` it is parsed and
    planned once per connection, for any binds; otherwise it is planned for these."""

    clause: TextClause
    binds: Mapping[str, Any]
    keeps_plan: bool = False


def fetch(reader: Reader, clause: TextClause, binds: Mapping[str, Any]) -> list[Row]:
    """Fetch all rows of a statement; `binds` may include others than its own. The reader must be
    from `Database`, which translates the driver's errors as it does SQLAlchemy's."""
    with Pipeline(_driver(reader)) as pipeline:
        place = pipeline.add(*_bound(clause, binds), prepares=True)
    return pipeline.rows(place)


def fetch_named(reader: Reader, clause: TextClause, binds: Mapping[str, Any]) -> list[Any]:
    """Fetch all rows of a statement, as `fetch` does, as named tuples."""
    with Pipeline(_driver(reader)) as pipeline:
        place = pipeline.add(*_bound(clause, binds), prepares=True)
    return list(map(_row_type(pipeline.columns(place))._make, pipeline.rows(place)))


@contextmanager
def sending(
    reader: Reader, settings: Planner, statements: Sequence[Statement]
) -> Iterator[list[list[Row]]]:
    """Send statements in one transaction, planned and executed under `settings`, and yield a list
    for the rows of each, which is filled once the context has ended. Statements that keep their
    plan must come after the others."""
    found: list[list[Row]] = [[] for _ in statements]
    if not statements:
        yield found
        return
    places = []
    with Pipeline(_driver(reader)) as pipeline:
        for keeps_plan, group in groupby(statements, attrgetter("keeps_plan")):
            settings = {**settings, "plan_cache_mode": _KEEPS} if keeps_plan else settings
            values = [value if isinstance(value, str) else value() for value in settings.values()]
            pipeline.add(_settings_statement(tuple(settings)), values, prepares=True)
            settings = {}
            for clause, binds, _ in group:
                places.append(pipeline.add(*_bound(clause, binds), prepares=keeps_plan))
        pipeline.send()
        yield found
    for rows, place in zip(found, places, strict=True):
        rows.extend(pipeline.rows(place))


def fetch_under(
    reader: Reader, settings: Planner, clause: TextClause, binds: Mapping[str, Any]
) -> list[Row]:
    """Fetch all rows of a statement that is planned for these binds, and run, under `settings`."""
    with sending(reader, settings, [Statement(clause, binds)]) as (found,):
        pass
    return found


def _driver(reader: Reader) -> Connection[Any]:
    if isinstance(reader, Connection):
        return reader
    driver: Any = reader.connection().connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _bound(clause: TextClause, binds: Mapping[str, Any]) -> tuple[bytes, list[Any]]:
    """Return the statement in the server's syntax, and its values."""
    statement, names = _compile(clause)
    return statement, [binds[name] for name in names]


@lru_cache(maxsize=64)
def _row_type(columns: tuple[str, ...]) -> Any:
    return namedtuple("Row", columns)


@lru_cache(maxsize=512)
def _compile(clause: TextClause) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement in the server's syntax, and its binds in their order."""
    compiled = clause.compile(dialect=_DIALECT)
    return str(compiled).encode(), tuple(compiled.positiontup or ())


@lru_cache(maxsize=16)
def _settings_statement(names: tuple[str, ...]) -> bytes:
    calls = (f"set_config('{name}', ${place}, true)" for place, name in enumerate(names, 1))
    return f"SELECT {', '.join(calls)}".encode()
