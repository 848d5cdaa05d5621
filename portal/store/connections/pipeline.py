"""Statements in libpq's pipeline, on a connection of the driver.

The driver converts values, but its cursors are left out: each sends its statement by itself and
looks for answers in between, which took a third of a search's time in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from psycopg import Connection, generators
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

# More statements of a connection than this are not prepared: the server keeps each for good.
_MAX_PREPARED = 200
_Key = tuple[bytes, tuple[int, ...]]
# The names of the prepared statements of connections that keep them, by their text and the types of
# their values.
_prepared: WeakKeyDictionary[Connection[Any], dict[_Key, bytes]] = WeakKeyDictionary()
_numbers = count()


def keep_prepared(driver: Connection[Any]) -> None:
    """Prepare statements on a connection. The driver itself must not: it deallocates all that the
    server has prepared after a rollback."""
    _prepared[driver] = {}


class Pipeline:
    """Statements that are sent at once and run in one transaction. Their rows are there once the
    context has ended. Raises the driver's errors then."""

    def __init__(self, driver: Connection[Any]) -> None:
        self._driver, self._pgconn = driver, driver.pgconn
        self._values = Transformer.from_context(driver)
        self._names = _prepared.get(driver)
        self._new_names: dict[_Key, bytes] = {}
        self._count = 0
        self._is_sent = False
        self._results: list[PGresult] = []

    def add(self, statement: bytes, values: Sequence[Any], *, prepares: bool) -> int:
        """Add a statement, prepared once a connection or not at all, and return its place."""
        wire = self._values.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = self._values.types or (), self._values.formats
        name = self._name(statement, types) if prepares else None
        if name is None:
            self._pgconn.send_query_params(statement, wire, types, formats, Format.BINARY)
        else:
            self._pgconn.send_query_prepared(name, wire, formats, Format.BINARY)
        self._count += 1
        return self._count - 1

    def _name(self, statement: bytes, types: tuple[int, ...]) -> bytes | None:
        """Return the name of the prepared statement. None where the connection keeps none, or has
        too many."""
        if self._names is None:
            return None
        key = statement, types
        if name := self._names.get(key) or self._new_names.get(key):
            return name
        if len(self._names) + len(self._new_names) >= _MAX_PREPARED:
            return None
        name = self._new_names[key] = b"portal_%d" % next(_numbers)
        self._pgconn.send_prepare(name, statement, types)
        return name

    def send(self) -> None:
        """Send what was added; no more may be added."""
        self._is_sent = True
        self._pgconn.pipeline_sync()
        if self._pgconn.flush():
            self._driver.wait(generators.send(self._pgconn))

    def __enter__(self) -> Self:
        self._pgconn.enter_pipeline_mode()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        try:
            if not self._is_sent:
                self.send()
            results = self._driver.wait(self._receive())
            self._pgconn.exit_pipeline_mode()
        except BaseException:
            # Answers that are still to come would be taken for those of later statements.
            self._driver.close()
            raise
        failed = next((one for one in results if one.status == ExecStatus.FATAL_ERROR), None)
        if failed is not None:
            # What follows it was not prepared either.
            if error is None:
                raise error_from_result(failed)
            return
        if self._names is not None:
            self._names |= self._new_names
        self._results = [one for one in results if one.status == ExecStatus.TUPLES_OK]

    def _receive(self) -> PQGen[list[PGresult]]:
        results: list[PGresult] = []
        while found := (yield from generators.fetch_many(self._pgconn)):
            results += found
            if found[0].status == ExecStatus.PIPELINE_SYNC:
                break
        return results

    def rows(self, place: int) -> list[tuple[Any, ...]]:
        """Return the rows of the statement at a place."""
        result = self._results[place]
        self._values.set_pgresult(result, format=Format.BINARY)
        return self._values.load_rows(0, result.ntuples, tuple)

    def columns(self, place: int) -> tuple[str, ...]:
        """Return the names of the columns of the statement at a place."""
        result = self._results[place]
        names = (result.fname(column) or b"" for column in range(result.nfields))
        return tuple(name.decode() for name in names)
