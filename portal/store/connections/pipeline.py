"""Statements in libpq's pipeline, on a connection of the driver.

The driver converts values, but its cursors are not used: each sends its own statement and checks
for answers in between, which takes a third of a search's time in Python.
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
from psycopg.pq import DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

# At this many statements a connection deallocates all: the server would keep each for good.
_MAX_PREPARED = 200
# A migration changed the types of a prepared statement's columns, or the statement is gone.
_OUTDATED = {b"0A000", b"26000"}
_Key = tuple[bytes, tuple[int, ...]]
# A statement with its values, their types and formats as libpq takes them, and whether it is
# prepared.
_Message = tuple[bytes, Sequence[Any], tuple[int, ...], Sequence[Format], bool]
# The names of the prepared statements of connections that keep them, by their text and the types of
# their values.
_prepared: WeakKeyDictionary[Connection[Any], dict[_Key, bytes]] = WeakKeyDictionary()
_numbers = count()


def keep_prepared(driver: Connection[Any]) -> None:
    """Prepare statements on a connection. The driver itself must not: it deallocates all that the
    server has prepared after a rollback."""
    _prepared[driver] = {}


class Pipeline:
    """Statements that are sent at once and run in one transaction. Their rows are available once
    the context has ended, which raises the driver's errors. If a migration has outdated a prepared
    statement, all are sent once more, unless they are part of a transaction that began earlier."""

    def __init__(self, driver: Connection[Any]) -> None:
        self._driver, self._pgconn = driver, driver.pgconn
        self._values = Transformer.from_context(driver)
        self._names = _prepared.get(driver)
        self._is_alone = self._pgconn.transaction_status == TransactionStatus.IDLE
        self._messages: list[_Message] = []
        # For each result the statement that it prepared, if any.
        self._sent: list[_Key | None] = []
        # For each message the place of its result.
        self._places: list[int] = []
        self._is_sent = False
        self._results: list[PGresult] = []

    def add(self, statement: bytes, values: Sequence[Any], *, prepares: bool) -> int:
        """Add a statement and return its place. With `prepares`, prepare it once per connection."""
        wire = self._values.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = self._values.types or (), self._values.formats or ()
        message = statement, wire, types, formats, prepares
        self._messages.append(message)
        self._send_one(*message)
        return len(self._messages) - 1

    def _send_one(
        self,
        statement: bytes,
        wire: Sequence[Any],
        types: tuple[int, ...],
        formats: Sequence[Format],
        prepares: bool,
    ) -> None:
        if prepares and self._names is not None:
            name = self._prepare(self._names, (statement, types))
            self._pgconn.send_query_prepared(name, wire, formats, Format.BINARY)
        else:
            self._pgconn.send_query_params(statement, wire, types, formats, Format.BINARY)
        self._places.append(len(self._sent))
        self._sent.append(None)

    def _prepare(self, names: dict[_Key, bytes], key: _Key) -> bytes:
        """Return the name of a prepared statement."""
        if key not in names:
            if not names or len(names) >= _MAX_PREPARED:
                names.clear()
                self._pgconn.send_query_params(b"DEALLOCATE ALL", None)
                self._sent.append(None)
            name = b"portal_%d" % next(_numbers)
            self._pgconn.send_prepare(name, *key)
            self._sent.append(key)
            names[key] = name
        return names[key]

    def send(self) -> None:
        """Send what was added; no more may be added."""
        self._is_sent = True
        self._pgconn.pipeline_sync()
        if self._pgconn.flush():
            self._driver.wait(generators.send(self._pgconn))

    def _send_again(self) -> None:
        self._sent, self._places = [], []
        for message in self._messages:
            self._send_one(*message)
        self.send()

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
            failed = self._finish()
            is_outdated = failed is not None and self._forget_outdated(failed)
            # If the caller raised an error, the result is not needed.
            if is_outdated and self._is_alone and error is None:
                self._send_again()
                failed = self._finish()
            self._pgconn.exit_pipeline_mode()
        except BaseException:
            # Pending results would otherwise be read as those of later statements.
            self._driver.close()
            raise
        if failed is not None and error is None:
            raise error_from_result(failed)

    def _finish(self) -> PGresult | None:
        """Receive all results; return that of the statement that failed, if one did."""
        if not self._is_sent:
            self.send()
        self._results = self._driver.wait(self._receive())
        if self._names is not None:
            # Those before the failed one stay prepared, although the transaction is rolled back.
            for key, result in zip(self._sent, self._results, strict=False):
                if key is not None and result.status != ExecStatus.COMMAND_OK:
                    self._names.pop(key, None)
        return next((one for one in self._results if one.status == ExecStatus.FATAL_ERROR), None)

    def _forget_outdated(self, failed: PGresult) -> bool:
        """Return whether an outdated prepared statement failed; if so, forget all of them."""
        if not self._names or failed.error_field(DiagnosticField.SQLSTATE) not in _OUTDATED:
            return False
        self._names.clear()
        return True

    def _receive(self) -> PQGen[list[PGresult]]:
        results: list[PGresult] = []
        while found := (yield from generators.fetch_many(self._pgconn)):
            results += found
            if found[0].status == ExecStatus.PIPELINE_SYNC:
                break
        return results

    def rows(self, place: int) -> list[tuple[Any, ...]]:
        """Return the rows of the statement at a place."""
        result = self._results[self._places[place]]
        self._values.set_pgresult(result, format=Format.BINARY)
        return self._values.load_rows(0, result.ntuples, tuple)

    def columns(self, place: int) -> tuple[str, ...]:
        """Return the names of the columns of the statement at a place."""
        result = self._results[self._places[place]]
        names = (result.fname(column) or b"" for column in range(result.nfields))
        return tuple(name.decode() for name in names)
