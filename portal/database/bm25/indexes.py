"""The BM25 indexes of pg_textsearch: their state, and how they are built and dropped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import psycopg
import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from portal.database.extensions import FIRST_DURABLE_PG_TEXTSEARCH, pg_textsearch_version
from portal.domain.search.bm25 import INDEXES, SERVER_STARTED_AT, Bm25Index, Bm25Parameters

STATE_TABLE = "bm25_index_state"
# Searches queue behind a drop that waits for a long reader of the table, such as a backup, so a
# drop only waits for a moment and tries again.
_DROP_TIMEOUT_MS = 100
_DROP_ATTEMPTS = 20
_DROP_RETRY_S = 0.5
State = Literal["absent", "ready", "rebuilding", "stale"]
_WORST_FIRST: tuple[State, ...] = ("absent", "stale", "rebuilding", "ready")
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Bm25State:
    """The state of an index; `absent` if there is no usable one."""

    state: State
    version: str | None = None
    rebuilt_at: datetime | None = None
    row_count: int | None = None
    needs_guard: bool = False
    is_of_this_start: bool = True


_RECORD = f"""
    SELECT state, rebuilt_at, row_count,
           server_started_at = {SERVER_STARTED_AT} AS is_of_this_start
      FROM bm25_index_state WHERE index_name = :name
"""


def read_state(connection: Connection) -> Bm25State:
    """Return the worse state of the two indexes, from the record of the last rebuild and the
    server's start."""
    return worst([read_index_state(connection, index) for index in INDEXES])


def worst(states: Sequence[Bm25State]) -> Bm25State:
    """Return the least usable of the states; of equals, the first."""
    return min(states, key=lambda state: _WORST_FIRST.index(state.state))


def read_index_state(connection: Connection, index: Bm25Index) -> Bm25State:
    version = pg_textsearch_version(connection)
    if version is None or not is_usable(connection, index):
        return Bm25State("absent")
    spelled = ".".join(str(part) for part in version)
    row = connection.execute(text(_RECORD), {"name": index.name}).one_or_none()
    if version >= FIRST_DURABLE_PG_TEXTSEARCH:
        return Bm25State("ready", spelled, row.rebuilt_at if row else None)
    if row is None:
        return Bm25State("stale", spelled, needs_guard=True, is_of_this_start=False)
    state: State = row.state if row.state in ("rebuilding", "stale") else "ready"
    if state == "ready" and not row.is_of_this_start:
        state = "stale"
    return Bm25State(
        state,
        spelled,
        row.rebuilt_at,
        row.row_count,
        needs_guard=True,
        is_of_this_start=bool(row.is_of_this_start),
    )


def savepoint(connection: Connection) -> AbstractContextManager[object]:
    """Open a savepoint, if in a transaction, so that a failing statement does not abort it."""
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return nullcontext()
    return connection.begin_nested()


def is_usable(connection: Connection, index: Bm25Index) -> bool:
    """Return whether the index exists and is valid: after an interrupted build it is not."""
    query = text(
        """
        SELECT i.indisvalid AND a.amname = 'bm25'
          FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
         WHERE i.indexrelid = to_regclass(:name)
        """
    )
    return bool(connection.execute(query, {"name": index.name}).scalar())


def options_for(parameters: Bm25Parameters) -> list[str]:
    """Return the storage parameters of an index, in the form in which PostgreSQL keeps them."""
    return [f"k1={parameters.k1:g}", f"b={parameters.b:g}"]


def options_of(connection: Connection, index: Bm25Index) -> set[str]:
    query = text("SELECT reloptions FROM pg_class WHERE oid = to_regclass(:name)")
    return set(connection.execute(query, {"name": index.name}).scalar() or ())


def has_more_rows(connection: Connection, index: Bm25Index, count: int | None) -> bool:
    if count is None:
        return False
    query = text(f"SELECT EXISTS (SELECT FROM {index.table} OFFSET :count)")
    return bool(connection.execute(query, {"count": count}).scalar())


def create(
    connection: Connection, index: Bm25Index, parameters: Bm25Parameters, *, concurrently: bool
) -> None:
    if not drop(connection, index):
        return
    how = "CONCURRENTLY " if concurrently else ""
    options = ", ".join(options_for(parameters))
    _build(
        connection,
        index,
        f"CREATE INDEX {how}{index.name} ON {index.table} USING bm25 (terms)"
        f" WITH (text_config = 'simple', {options})",
    )


def rebuild(connection: Connection, index: Bm25Index, *, concurrently: bool) -> Bm25State:
    remember(connection, index, "rebuilding")
    drop_each(connection, *_leftovers(index))
    how = "CONCURRENTLY " if concurrently else ""
    _build(connection, index, f"REINDEX INDEX {how}{index.name}")
    return read_index_state(connection, index)


def _build(connection: Connection, index: Bm25Index, statement: str) -> None:
    connection.execute(text(statement))
    rows = connection.execute(text(f"SELECT count(*) FROM {index.table}")).scalar_one()
    remember(connection, index, "ready", row_count=rows)


def drop(connection: Connection, index: Bm25Index) -> bool:
    """Drop an index and the leftovers of interrupted builds; return False if the table was being
    read at each attempt."""
    return drop_each(connection, index.name, *_leftovers(index))


def drop_each(connection: Connection, *names: str) -> bool:
    connection.execute(text(f"SET lock_timeout = {_DROP_TIMEOUT_MS}"))
    try:
        return all(_drop_one(connection, name) for name in names)
    finally:
        connection.execute(text("RESET lock_timeout"))


def _drop_one(connection: Connection, name: str) -> bool:
    for attempt in range(_DROP_ATTEMPTS):
        if attempt:
            time.sleep(_DROP_RETRY_S)
        try:
            with savepoint(connection):
                connection.execute(text(f"DROP INDEX IF EXISTS {name}"))
        except DBAPIError as error:
            if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
                raise
        else:
            return True
    log.warning("keyword index could not be dropped, because chunks are being read", index=name)
    return False


def _leftovers(index: Bm25Index) -> tuple[str, str]:
    """Return the names of indexes that interrupted concurrent builds leave behind, which slow down
    or refuse every write."""
    return f"{index.name}_ccnew", f"{index.name}_ccold"


def remember(
    connection: Connection, index: Bm25Index, state: State, row_count: int | None = None
) -> None:
    connection.execute(
        text(
            f"""
            INSERT INTO bm25_index_state
                   (index_name, server_started_at, rebuilt_at, row_count, state)
            VALUES (:name, CASE WHEN :state = 'ready' THEN {SERVER_STARTED_AT} END,
                    CASE WHEN :state = 'ready' THEN now() END, :row_count, :state)
            ON CONFLICT (index_name) DO UPDATE
               SET server_started_at = coalesce(
                       excluded.server_started_at, bm25_index_state.server_started_at),
                   rebuilt_at = coalesce(excluded.rebuilt_at, bm25_index_state.rebuilt_at),
                   row_count = coalesce(excluded.row_count, bm25_index_state.row_count),
                   state = excluded.state
            """
        ),
        {"name": index.name, "state": state, "row_count": row_count},
    )
