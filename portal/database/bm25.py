"""The BM25 indexes of pg_textsearch, and the guard that its early versions need.

There are two. One is on all chunks, for administrators, who see everything, and for programs' own
collections. The other is on shared chunks alone, because an index weights words by everything in
it, and a user's results must not depend on private documents of others.

Before 1.4.0 the index keeps its corpus statistics (how many chunks there are, and how long) in
shared memory, and on disk only as of its last build. After a restart, or a crash of any session,
chunks added since that build are lost to it: ranking is silently wrong, or nothing is found. A
rebuild restores it. So the index is rebuilt once for every start of the server, and probed in
between.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

import psycopg
import structlog
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from portal.database.cancelling import cancelled_when
from portal.database.extensions import (
    FIRST_DURABLE_PG_TEXTSEARCH,
    pg_textsearch_version,
    read_extensions,
)
from portal.domain import locks


@dataclass(frozen=True)
class Bm25Index:
    """A BM25 index on the column `terms` of a table, and the order of its rows, newest first. Its
    count of rows may be off by a share of them and by `count_slack`."""

    name: str
    table: str
    newest_first: str
    count_slack: int


ALL_CHUNKS = Bm25Index("ix_document_chunks_bm25", "document_chunks", "created_at DESC, id", 20)
# Chunks that are trashed or made private leave this index, but are counted until it is rebuilt.
SHARED_CHUNKS = Bm25Index("ix_shared_chunks_bm25", "shared_chunks", "ctid DESC", 0)
INDEXES = (ALL_CHUNKS, SHARED_CHUNKS)
STATE_TABLE = "bm25_index_state"

# Chunks that are indexed before the portal serves, .4 ms each. A larger index is dropped and built
# by a worker, and searches go by meaning until then.
MAX_ROWS_AT_START = 10_000
# How often a process that waits for another's rebuild asks for the lock.
_RETRY_S = 0.1
# Searches queue behind a drop that waits for a long reader of the table, such as a backup, so it
# waits for a moment only and tries again.
_DROP_TIMEOUT_MS = 100
_DROP_ATTEMPTS = 20
_DROP_RETRY_S = 0.5
# How far the index may lag behind the table during concurrent writes.
_COUNT_TOLERANCE = 0.05

State = Literal["absent", "ready", "rebuilding", "stale"]
_WORST_FIRST: tuple[State, ...] = ("absent", "stale", "rebuilding", "ready")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Bm25State:
    """The state of the index. `absent` where the server has no pg_textsearch."""

    state: State
    version: str | None = None
    rebuilt_at: datetime | None = None
    row_count: int | None = None
    needs_guard: bool = False


@dataclass(frozen=True)
class Probe:
    """Whether an existing chunk is found, and whether all are counted."""

    term: str | None
    matches: int
    row_count: int
    all_rows: int
    counted: int | None
    slack: int

    @property
    def is_exact(self) -> bool:
        """Return whether the index counts exactly the rows that exist."""
        return self.counted is None or self.row_count <= self.counted <= self.all_rows

    @property
    def answers(self) -> bool:
        if self.term is not None and self.matches == 0:
            return False
        if self.counted is None or self.all_rows == 0:
            return True
        # Too few: lost in a restart. Too many: deleted or rolled back rows, which it never forgets.
        min_count = self.row_count * (1 - _COUNT_TOLERANCE) - self.slack
        max_count = self.all_rows * (1 + _COUNT_TOLERANCE) + self.slack
        return min_count <= self.counted <= max_count


@dataclass(frozen=True)
class Parameters:
    """Parameters of BM25: `k1` limits the effect of repeated words, `b` penalises long chunks.
    PostgreSQL stores them with the index, in this form."""

    k1: float = 1.2
    b: float = 0.75

    @property
    def options(self) -> set[str]:
        return {f"k1={self.k1:g}", f"b={self.b:g}"}

    @property
    def assignments(self) -> str:
        return f"k1 = {self.k1:g}, b = {self.b:g}"


DEFAULTS = Parameters()


def ensure_index(
    connection: Connection, parameters: Parameters = DEFAULTS, *, max_rows: int | None = None
) -> bool:
    """Create missing indexes unless they would have more rows; return whether pg_textsearch is
    installed.

    Never clone a database that has this index (CREATE DATABASE ... TEMPLATE): pg_textsearch 1.0.0
    identifies an index by its OID alone, clones share it, and each then reads the other's pages.
    Clone first, then call this.
    """
    if pg_textsearch_version(connection) is None:
        return False
    for index in INDEXES:
        if not _is_usable(connection, index) and not _has_more_rows(connection, index, max_rows):
            _create(connection, index, parameters, concurrently=False)
    return True


def rebuild_after_start(
    engine: Engine, parameters: Parameters | None = None, *, max_rows: int | None = None
) -> Bm25State:
    """Rebuild each index that has other parameters, has not been rebuilt since the server started,
    or counts chunks that do not exist. Processes that start together do it once: the others wait
    and find it done, or go on without it where it is large. An index with more than `max_rows`
    is dropped instead, for `repair`: with the statistics of another start it accepts no writes.
    While a long reader keeps it from being dropped it stays as it is."""

    def is_small(connection: Connection) -> bool:
        return not any(_has_more_rows(connection, index, max_rows) for index in INDEXES)

    with _connect_alone(engine, waits=is_small) as connection:
        if connection is not None:
            return _worst([_refresh(connection, index, parameters, max_rows) for index in INDEXES])
    with engine.connect() as connection:
        return read_state(connection)


def _refresh(
    connection: Connection,
    index: Bm25Index,
    parameters: Parameters | None,
    max_rows: int | None,
) -> Bm25State:
    if not _is_usable(connection, index):
        _drop(connection, index)
        return Bm25State("absent")
    state = _read_state(connection, index)
    changes = parameters is not None and not parameters.options <= _options(connection, index)
    is_rebuilt = not state.needs_guard or _is_rebuilt_since_start(connection, index)
    is_settled = is_rebuilt and not changes
    if _has_more_rows(connection, index, max_rows):
        if is_settled:
            return state
        log.info("keyword index is left to a worker", index=index.name)
        is_dropped = _drop(connection, index)
        return Bm25State("absent") if is_dropped else state
    if is_settled and (not state.needs_guard or probe(connection, index).is_exact):
        return state
    if parameters is not None and changes:
        log.info("keyword index gets new parameters", index=index.name, **asdict(parameters))
        connection.execute(text(f"ALTER INDEX {index.name} SET ({parameters.assignments})"))
    # If it was rebuilt, the server outlived its clients. Interrupted inserts are counted by the
    # index although they were rolled back, and affect every score. Others may be writing, and only
    # a concurrent rebuild leaves the index usable meanwhile.
    return _rebuild(connection, index, concurrently=is_rebuilt or changes)


def _drop(connection: Connection, index: Bm25Index) -> bool:
    """Drop an index and what interrupted builds left of it; return False if their table was being
    read at each attempt."""
    return _drop_each(connection, index.name, *_leftovers(index))


def _drop_each(connection: Connection, *names: str) -> bool:
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
            with _savepoint(connection):
                connection.execute(text(f"DROP INDEX IF EXISTS {name}"))
        except DBAPIError as error:
            if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
                raise
        else:
            return True
    log.warning("keyword index could not be dropped, because chunks are being read", index=name)
    return False


def _leftovers(index: Bm25Index) -> tuple[str, str]:
    """Return the names of what interrupted concurrent builds left, which slows every write or
    refuses it."""
    return f"{index.name}_ccnew", f"{index.name}_ccold"


def _has_more_rows(connection: Connection, index: Bm25Index, count: int | None) -> bool:
    if count is None:
        return False
    query = text(f"SELECT EXISTS (SELECT FROM {index.table} OFFSET :count)")
    return bool(connection.execute(query, {"count": count}).scalar())


def repair(
    engine: Engine,
    parameters: Parameters = DEFAULTS,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bm25State:
    """Repair each index if it is missing, the server has restarted or it does not answer, and
    return the state; `absent` where the server does not offer pg_textsearch. Searches go on
    meanwhile. Cheap when nothing is wrong: call it on a timer. Raises Cancelled once `should_stop`
    returns True; the next call begins again."""
    return _worst([_repair(engine, index, parameters, should_stop) for index in INDEXES])


def _repair(
    engine: Engine, index: Bm25Index, parameters: Parameters, should_stop: Callable[[], bool]
) -> Bm25State:
    with engine.connect() as connection:
        state = _read_state(connection, index)
        if state.state != "absent" and _is_healthy(connection, index, state):
            return state
        if state.state == "absent" and not _is_available(connection):
            return state
    with _connect_alone(engine, waits=lambda _: False) as connection:
        if connection is None:  # Another worker may be at it.
            return state
        with cancelled_when(connection, should_stop):
            return _repair_alone(connection, index, parameters)


def _repair_alone(connection: Connection, index: Bm25Index, parameters: Parameters) -> Bm25State:
    if pg_textsearch_version(connection) is None and not _restore_extension(connection):
        return Bm25State("absent")
    state = _read_state(connection, index)
    if state.state == "absent" or _refuses_writes(connection, index, state):
        log.warning("keyword index is missing or outdated; building it", index=index.name)
        _create(connection, index, parameters, concurrently=True)
        return _read_state(connection, index)
    if _is_healthy(connection, index, state):
        return state
    _remember(connection, index, "stale")
    log.warning("keyword index does not answer as it should; rebuilding it", index=index.name)
    state = _rebuild(connection, index, concurrently=True)
    if not probe(connection, index).answers:
        state = _rebuild(connection, index, concurrently=False)
    log.warning("keyword index rebuilt", index=index.name, rows=state.row_count)
    return state


def probe(connection: Connection, index: Bm25Index = ALL_CHUNKS) -> Probe:
    """Query an index for a word of the newest chunk, and for its number of chunks."""
    rows, all_rows = connection.execute(
        text(f"SELECT count(*) FILTER (WHERE terms <> ''), count(*) FROM {index.table}")
    ).one()
    term = _term_of_newest_chunk(connection, index)
    matches = 0
    if term is not None:
        matches = connection.execute(
            text(
                f"""
                SELECT count(*) FROM (
                    SELECT terms <@> to_bm25query(:term, '{index.name}') AS score
                      FROM {index.table}
                     ORDER BY terms <@> to_bm25query(:same_term, '{index.name}')
                     LIMIT 5
                ) AS best WHERE score < 0
                """
            ),
            {"term": term, "same_term": term},
        ).scalar_one()
    return Probe(
        term, matches, rows, all_rows, _count_indexed(connection, index), index.count_slack
    )


def read_state(connection: Connection) -> Bm25State:
    """Return the worse state of both indexes, from the record of the last rebuild and the server's
    start."""
    return _worst([_read_state(connection, index) for index in INDEXES])


def _worst(states: Sequence[Bm25State]) -> Bm25State:
    """Return the first of the states with the lowest usability."""
    return min(states, key=lambda state: _WORST_FIRST.index(state.state))


def _read_state(connection: Connection, index: Bm25Index) -> Bm25State:
    version = pg_textsearch_version(connection)
    if version is None or not _is_usable(connection, index):
        return Bm25State("absent")
    spelled = ".".join(str(part) for part in version)
    query = "SELECT state, rebuilt_at, row_count FROM bm25_index_state WHERE index_name = :name"
    row = connection.execute(text(query), {"name": index.name}).one_or_none()
    if version >= FIRST_DURABLE_PG_TEXTSEARCH:
        return Bm25State("ready", spelled, row.rebuilt_at if row else None)
    if row is None:
        return Bm25State("stale", spelled, needs_guard=True)
    state: State = row.state if row.state in ("rebuilding", "stale") else "ready"
    if state == "ready" and not _is_rebuilt_since_start(connection, index):
        state = "stale"
    return Bm25State(state, spelled, row.rebuilt_at, row.row_count, needs_guard=True)


def _refuses_writes(connection: Connection, index: Bm25Index, state: Bm25State) -> bool:
    """Return whether a large index is of another start of the server. To rebuild it would take
    minutes; without it chunks can be written meanwhile."""
    return (
        state.needs_guard
        and _has_more_rows(connection, index, MAX_ROWS_AT_START)
        and not _is_of_this_start(connection, index)
    )


def _is_healthy(connection: Connection, index: Bm25Index, state: Bm25State) -> bool:
    started = not state.needs_guard or _is_rebuilt_since_start(connection, index)
    try:
        with _savepoint(connection):
            return started and probe(connection, index).answers
    except DBAPIError as error:
        # A statement that was cancelled tells nothing.
        if error.connection_invalidated or isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        return False  # A damaged file causes an error.


def _savepoint(connection: Connection) -> AbstractContextManager[object]:
    """Open a savepoint, if in a transaction, so that a failing statement does not abort it."""
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return nullcontext()
    return connection.begin_nested()


def _is_usable(connection: Connection, index: Bm25Index) -> bool:
    """Return whether the index exists and is valid: after an interrupted build it is not."""
    query = text(
        """
        SELECT i.indisvalid AND a.amname = 'bm25'
          FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
         WHERE i.indexrelid = to_regclass(:name)
        """
    )
    return bool(connection.execute(query, {"name": index.name}).scalar())


def _options(connection: Connection, index: Bm25Index) -> set[str]:
    query = text("SELECT reloptions FROM pg_class WHERE oid = to_regclass(:name)")
    return set(connection.execute(query, {"name": index.name}).scalar() or ())


def _create(
    connection: Connection, index: Bm25Index, parameters: Parameters, *, concurrently: bool
) -> None:
    if not _drop(connection, index):
        return
    how = "CONCURRENTLY " if concurrently else ""
    connection.execute(
        text(
            f"CREATE INDEX {how}{index.name} ON {index.table} USING bm25 (terms)"
            f" WITH (text_config = 'simple', {parameters.assignments})"
        )
    )
    rows = connection.execute(text(f"SELECT count(*) FROM {index.table}")).scalar_one()
    _remember(connection, index, "ready", row_count=rows)


def _is_available(connection: Connection) -> bool:
    """Return whether the server has the extension, or can install it in this database."""
    return read_extensions(connection)["pg_textsearch"].available is not None


def _restore_extension(connection: Connection) -> bool:
    """Install the extension again; return False where it is not permitted or not preloaded."""
    try:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS pg_textsearch"))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return False
    return True


@contextmanager
def _connect_alone(
    engine: Engine, *, waits: Callable[[Connection], bool]
) -> Iterator[Connection | None]:
    """Open a connection without transactions, for concurrent rebuilds, under their lock; None if
    another process has it and this one does not wait.

    The lock is asked for again and again: a statement that waited for it would have a snapshot,
    for whose end a concurrent build waits. That is a deadlock, and the build fails at its end."""
    locking, key = text("SELECT pg_try_advisory_lock(:key)"), {"key": locks.KEYWORD_INDEX}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(locking, key).scalar():
            if not waits(connection):
                yield None
                return
            time.sleep(_RETRY_S)
        try:
            yield connection
        finally:
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)


# After a killed session the postmaster restarts everything but itself: its own start time does not
# change then, but the checkpointer's does.
_SERVER_STARTED_AT = """
    SELECT greatest(
        pg_postmaster_start_time(),
        (SELECT max(backend_start) FROM pg_stat_activity WHERE backend_type = 'checkpointer')
    )
"""


def _is_rebuilt_since_start(connection: Connection, index: Bm25Index) -> bool:
    return _is_of_this_start(connection, index, "AND state = 'ready'")


def _is_of_this_start(connection: Connection, index: Bm25Index, condition: str = "") -> bool:
    query = text(
        f"SELECT server_started_at = ({_SERVER_STARTED_AT}) {condition}"
        " FROM bm25_index_state WHERE index_name = :name"
    )
    return bool(connection.execute(query, {"name": index.name}).scalar())


def _rebuild(connection: Connection, index: Bm25Index, *, concurrently: bool) -> Bm25State:
    _remember(connection, index, "rebuilding")
    _drop_each(connection, *_leftovers(index))
    how = "CONCURRENTLY " if concurrently else ""
    connection.execute(text(f"REINDEX INDEX {how}{index.name}"))
    rows = connection.execute(text(f"SELECT count(*) FROM {index.table}")).scalar_one()
    _remember(connection, index, "ready", row_count=rows)
    return _read_state(connection, index)


def _remember(
    connection: Connection, index: Bm25Index, state: State, row_count: int | None = None
) -> None:
    connection.execute(
        text(
            f"""
            INSERT INTO bm25_index_state
                   (index_name, server_started_at, rebuilt_at, row_count, state)
            VALUES (:name, CASE WHEN :state = 'ready' THEN ({_SERVER_STARTED_AT}) END,
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


def _term_of_newest_chunk(connection: Connection, index: Bm25Index) -> str | None:
    """Return the longest word of a chunk in the table's last pages, where new ones go."""
    last_pages = f"""
        SELECT terms FROM {index.table}
         WHERE terms <> '' AND ctid >= format('(%s,0)', greatest(0,
                   pg_relation_size('{index.table}')
                   / current_setting('block_size')::int - 8))::tid
         ORDER BY {index.newest_first} LIMIT 1
    """
    terms = connection.execute(text(last_pages)).scalar()
    if terms is None:
        anywhere = f"SELECT terms FROM {index.table} WHERE terms <> '' LIMIT 1"
        terms = connection.execute(text(anywhere)).scalar()
    words = [word for word in (terms or "").split() if word.isalnum()]
    return max(words, key=len, default=None)


def _count_indexed(connection: Connection, index: Bm25Index) -> int | None:
    """Return how many chunks the index counts; None without the privilege to ask."""
    try:
        with _savepoint(connection):
            query = text("SELECT bm25_summarize_index(:name)")
            summary = connection.execute(query, {"name": index.name}).scalar_one()
    except DBAPIError:
        return None
    found = re.search(r"total_docs:\s*(\d+)", summary)
    return int(found[1]) if found else None
