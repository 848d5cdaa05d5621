"""The BM25 indexes of pg_textsearch, and the guard that its early versions need.

There are two. One is on all chunks, for administrators, who see everything, and for programs' own
collections. The other is on shared chunks alone, because an index weights words by everything in
it, and a user's results must not depend on private documents of others.

Before 1.4.0 the index keeps its corpus statistics (how many chunks there are, and how long) in
shared memory, and on disk only as of its last build. After a restart, or a crash of any session,
chunks added since that build are lost to it: ranking is silently wrong, or nothing is found. A
rebuild restores it. So the index is rebuilt once for every start of the server, and probed in
between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import structlog
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from portal.database.bm25.indexes import (
    Bm25State,
    create,
    drop,
    has_more_rows,
    is_usable,
    options_for,
    options_of,
    read_index_state,
    read_state,
    rebuild,
    remember,
    worst,
)
from portal.database.bm25.probing import is_healthy, probe
from portal.database.cancelling import cancelled_when
from portal.database.extensions import pg_textsearch_version, read_extensions
from portal.domain import locks
from portal.domain.search.bm25 import DEFAULT_PARAMETERS, INDEXES, Bm25Index, Bm25Parameters

# Chunks that are indexed before the portal serves, at .4 ms each. A larger index is dropped and
# built by a worker; until then, searches are semantic only.
MAX_ROWS_AT_START = 10_000
# How often a process that waits for another's rebuild asks for the lock.
_RETRY_S = 0.1
log = structlog.get_logger(__name__)


def ensure_index(
    connection: Connection,
    parameters: Bm25Parameters = DEFAULT_PARAMETERS,
    *,
    max_rows: int | None = None,
) -> bool:
    """Create missing indexes of at most `max_rows` rows; return whether pg_textsearch is
    installed.

    Never clone a database that has this index (CREATE DATABASE ... TEMPLATE): pg_textsearch 1.0.0
    identifies an index by its OID alone, clones share it, and each then reads the other's pages.
    Clone first, then call this.
    """
    if pg_textsearch_version(connection) is None:
        return False
    for index in INDEXES:
        if not is_usable(connection, index) and not has_more_rows(connection, index, max_rows):
            create(connection, index, parameters, concurrently=False)
    return True


def rebuild_after_start(
    engine: Engine, parameters: Bm25Parameters | None = None, *, max_rows: int | None = None
) -> Bm25State:
    """Rebuild each index that has other parameters, has not been rebuilt since the server started,
    or counts chunks that do not exist. If several processes start together, one rebuilds and the
    others wait, or continue without the index if it is large. An index with more than `max_rows`
    is dropped instead, for `repair`: with the statistics of another start it accepts no writes. If
    a long reader keeps it from being dropped, it stays as it is."""

    def is_small(connection: Connection) -> bool:
        return not any(has_more_rows(connection, index, max_rows) for index in INDEXES)

    with _connect_alone(engine, waits=is_small) as connection:
        if connection is not None:
            return worst([_refresh(connection, index, parameters, max_rows) for index in INDEXES])
    with engine.connect() as connection:
        return read_state(connection)


def _refresh(
    connection: Connection,
    index: Bm25Index,
    parameters: Bm25Parameters | None,
    max_rows: int | None,
) -> Bm25State:
    state = read_index_state(connection, index)
    if state.state == "absent":
        drop(connection, index)
        return state
    changes = parameters is not None and not options_of(connection, index).issuperset(
        options_for(parameters)
    )
    is_rebuilt = state.state == "ready"
    is_settled = is_rebuilt and not changes
    if has_more_rows(connection, index, max_rows):
        if is_settled:
            return state
        log.info("keyword index is left to a worker", index=index.name)
        is_dropped = drop(connection, index)
        return Bm25State("absent") if is_dropped else state
    if is_settled and (not state.needs_guard or probe(connection, index).is_exact):
        return state
    if parameters is not None and changes:
        log.info("keyword index gets new parameters", index=index.name, **asdict(parameters))
        options = ", ".join(options_for(parameters))
        connection.execute(text(f"ALTER INDEX {index.name} SET ({options})"))
    # If it was rebuilt, the server outlived its clients. Interrupted inserts are counted by the
    # index although they were rolled back, and affect every score. Others may be writing, and only
    # a concurrent rebuild leaves the index usable meanwhile.
    return rebuild(connection, index, concurrently=is_rebuilt or changes)


def repair(
    engine: Engine,
    parameters: Bm25Parameters = DEFAULT_PARAMETERS,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Bm25State:
    """Repair each index that is missing, does not answer, or is from before a restart of the
    server, and return the state; `absent` if the server does not offer pg_textsearch. Searches
    continue meanwhile. Cheap when nothing is wrong: call it on a timer. Raises Cancelled once
    `should_stop` returns True; the next call starts over."""
    return worst([_repair(engine, index, parameters, should_stop) for index in INDEXES])


def _repair(
    engine: Engine, index: Bm25Index, parameters: Bm25Parameters, should_stop: Callable[[], bool]
) -> Bm25State:
    with engine.connect() as connection:
        state = read_index_state(connection, index)
        if is_healthy(connection, index, state):
            return state
        if (
            state.state == "absent"
            and read_extensions(connection)["pg_textsearch"].available is None
        ):
            return state
    with _connect_alone(engine, waits=lambda _: False) as connection:
        if connection is None:  # Another worker may be repairing it.
            return state
        with cancelled_when(connection, should_stop):
            return _repair_alone(connection, index, parameters)


def _repair_alone(
    connection: Connection, index: Bm25Index, parameters: Bm25Parameters
) -> Bm25State:
    if pg_textsearch_version(connection) is None and not _restore_extension(connection):
        return Bm25State("absent")
    state = read_index_state(connection, index)
    if state.state == "absent" or _refuses_writes(connection, index, state):
        log.warning("keyword index is missing or outdated; building it", index=index.name)
        create(connection, index, parameters, concurrently=True)
        return read_index_state(connection, index)
    if is_healthy(connection, index, state):
        return state
    remember(connection, index, "stale")
    log.warning("keyword index does not answer as it should; rebuilding it", index=index.name)
    state = rebuild(connection, index, concurrently=True)
    if not probe(connection, index).answers:
        state = rebuild(connection, index, concurrently=False)
    log.warning("keyword index rebuilt", index=index.name, rows=state.row_count)
    return state


def _refuses_writes(connection: Connection, index: Bm25Index, state: Bm25State) -> bool:
    """Return whether the index is large and from another start of the server. Rebuilding it would
    take minutes; without it, chunks can be written meanwhile."""
    return (
        state.needs_guard
        and not state.is_of_this_start
        and has_more_rows(connection, index, MAX_ROWS_AT_START)
    )


def _restore_extension(connection: Connection) -> bool:
    """Install the extension again; return False if that is not permitted or it is not preloaded."""
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

    The lock is polled: a statement that waited for it would hold a snapshot, and a concurrent build
    waits for older snapshots to end. That would be a deadlock, in which the build fails."""
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
