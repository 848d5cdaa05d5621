"""The guard of the BM25 index, with the real extension."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from portal.database import bm25
from portal.database.bm25 import indexes, probing
from portal.database.cancelling import Cancelled
from portal.database.embedded import EmbeddedPostgres
from portal.database.extensions import (
    FIRST_DURABLE_PG_TEXTSEARCH,
    ensure_extensions,
    pg_textsearch_version,
)
from portal.database.server.postmaster import running_postmaster
from portal.domain import locks
from portal.domain.search.bm25 import ALL_CHUNKS, DEFAULT_PARAMETERS, SHARED_CHUNKS, Bm25Parameters
from tests.factories.uploads import needs_bm25

INDEX = ALL_CHUNKS.name

ONE = f" WHERE index_name = '{INDEX}'"
OF_INDEX = " WHERE indexrelid = '{}'::regclass"
CONFIGURED = "WITH (text_config = 'simple')"

pytestmark = needs_bm25

TABLES = """
    CREATE TABLE document_chunks (
        id integer PRIMARY KEY, terms text NOT NULL, created_at timestamptz DEFAULT now()
    );
    CREATE TABLE shared_chunks (chunk_id integer PRIMARY KEY, terms text NOT NULL);
    CREATE TABLE bm25_index_state (
        index_name text PRIMARY KEY, server_started_at timestamptz, rebuilt_at timestamptz,
        row_count integer, state text NOT NULL DEFAULT 'unknown'
    );
"""


@pytest.fixture
def engine(own_server: EmbeddedPostgres) -> Iterator[Engine]:
    own_server.start()
    made = create_engine(own_server.url())
    with made.begin() as connection:
        connection.execute(text(TABLES))
    with made.connect() as connection:
        ensure_extensions(connection)
    with made.begin() as connection:
        assert bm25.ensure_index(connection)
    bm25.rebuild_after_start(made)
    add(made, range(300))
    yield made
    made.dispose()


def add(engine: Engine, numbers: range) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO document_chunks (id, terms) VALUES (:id, :terms)"),
            [
                {"id": n, "terms": f"共同 单词{n} {'罕见' if n % 50 == 0 else '常见'}"}
                for n in numbers
            ],
        )


def search(engine: Engine, word: str) -> list[tuple[int, float]]:
    query = text(
        f"""
        SELECT id, terms <@> to_bm25query(:word, '{INDEX}') AS score FROM document_chunks
         ORDER BY terms <@> to_bm25query(:same, '{INDEX}') LIMIT 20
        """
    )
    with engine.connect() as connection:
        rows = connection.execute(query, {"word": word, "same": word})
        return sorted((row.id, round(row.score, 6)) for row in rows if row.score < 0)


def oid_of_index(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(text(f"SELECT '{INDEX}'::regclass::oid::bigint")).scalar_one()


def restart(server: EmbeddedPostgres, engine: Engine, *, kill: bool) -> None:
    engine.dispose()
    if kill:
        found = running_postmaster(server.cluster)
        assert found is not None
        process = psutil.Process(found.pid)
        process.kill()
        psutil.wait_procs([process], timeout=10)
    else:
        server.stop()
    server.start()


def answers(engine: Engine) -> bool:
    with engine.connect() as connection:
        return probing.probe(connection).answers


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_rebuild_restores_what_a_restart_loses(
    own_server: EmbeddedPostgres, engine: Engine, kill: bool
) -> None:
    before = search(engine, "罕见")
    assert len(before) == 6
    restart(own_server, engine, kill=kill)
    with engine.connect() as connection:
        version = pg_textsearch_version(connection)
        assert version is not None
        if version < FIRST_DURABLE_PG_TEXTSEARCH:
            assert search(engine, "罕见") != before, "the guard is no longer needed: see bm25.py"
            assert indexes.read_state(connection).state == "stale"
    state = bm25.rebuild_after_start(engine)
    assert (state.state, search(engine, "罕见")) == ("ready", before)
    assert answers(engine)


def test_a_large_index_is_left_to_a_worker_at_a_start(
    own_server: EmbeddedPostgres, engine: Engine
) -> None:
    before = search(engine, "罕见")
    restart(own_server, engine, kill=False)
    assert bm25.rebuild_after_start(engine, max_rows=1).state == "absent"
    # This would fail on an index from before the restart.
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM document_chunks WHERE id = 299"))
    add(engine, range(299, 300))
    with engine.begin() as connection:
        bm25.ensure_index(connection, max_rows=1)
        assert indexes.read_state(connection).state == "absent"
    assert (bm25.repair(engine).state, search(engine, "罕见")) == ("ready", before)


def test_a_drop_that_waits_for_a_long_reader_gives_way_to_searches(
    own_server: EmbeddedPostgres, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting lock makes all later ones wait behind it."""
    restart(own_server, engine, kill=False)
    found: list[int] = []

    def count(_: float) -> None:
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = 1"))
            found.append(
                connection.execute(text("SELECT count(*) FROM document_chunks")).scalar_one()
            )

    monkeypatch.setattr(bm25.time, "sleep", count)
    monkeypatch.setattr(indexes, "_DROP_ATTEMPTS", 3)
    monkeypatch.setattr(bm25, "MAX_ROWS_AT_START", 1)
    with engine.connect() as reader:
        reader.execute(text("SELECT count(*) FROM document_chunks"))
        assert bm25.rebuild_after_start(engine, max_rows=1).state == "stale"
        assert bm25.repair(engine).state == "stale"
    assert found == [300] * 4
    # Dropped and built, because an index from before a restart accepts no writes until then.
    before = oid_of_index(engine)
    assert bm25.repair(engine).state == "ready"
    assert oid_of_index(engine) != before


def test_leftovers_of_an_interrupted_build_are_dropped_at_a_start(engine: Engine) -> None:
    """Like an index from before a restart of the server, they may accept no writes."""
    name = SHARED_CHUNKS.name
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE pg_index SET indisvalid = false{OF_INDEX.format(name)}"))
        connection.execute(
            text(f"CREATE INDEX {INDEX}_ccnew ON document_chunks USING bm25 (terms) {CONFIGURED}")
        )
        connection.execute(text(f"UPDATE bm25_index_state SET server_started_at = now(){ONE}"))
    bm25.rebuild_after_start(engine, max_rows=0)
    with engine.connect() as connection:
        left = "SELECT count(*) FROM pg_class WHERE relname LIKE '%bm25%' AND relkind = 'i'"
        assert connection.execute(text(left + " AND relname NOT LIKE '%state%'")).scalar() == 0


def test_new_parameters_of_a_large_index_are_left_to_a_worker(engine: Engine) -> None:
    parameters = Bm25Parameters(k1=1.7)
    assert bm25.rebuild_after_start(engine, parameters, max_rows=1).state == "absent"
    assert bm25.repair(engine, parameters).state == "ready"
    assert bm25.rebuild_after_start(engine, parameters, max_rows=1).state == "ready"


def test_nothing_waits_while_a_worker_builds(engine: Engine) -> None:
    """A statement that waits holds a snapshot that the build waits for, which is a deadlock."""
    key = {"key": locks.KEYWORD_INDEX}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as building:
        building.execute(text(f"DROP INDEX {INDEX}"))
        building.execute(text("SELECT pg_advisory_lock(:key)"), key)
        assert bm25.repair(engine).state == "absent"
        assert bm25.rebuild_after_start(engine, max_rows=1).state == "absent"
        building.execute(text("SELECT pg_advisory_unlock(:key)"), key)
    assert bm25.repair(engine).state == "ready"


def test_cancelled_check_does_not_make_an_index_stale(engine: Engine) -> None:
    timeout = {"options": "-c statement_timeout=500"}
    impatient = create_engine(engine.url, connect_args=timeout)
    with engine.begin() as blocking:
        blocking.execute(text("LOCK TABLE document_chunks"))
        with pytest.raises(DBAPIError, match="statement timeout"):
            bm25.repair(impatient)
        state = blocking.execute(text(f"SELECT state FROM bm25_index_state{ONE}")).scalar()
    impatient.dispose()
    assert state == "ready"


def test_build_ends_when_its_process_is_to_end(engine: Engine) -> None:
    with engine.begin() as reader:
        reader.execute(text(f"DROP INDEX {INDEX}"))
    with engine.connect() as reader:
        # A concurrent build waits for the end of this snapshot.
        reader.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        assert indexes.read_state(reader).state == "absent"
        with pytest.raises(Cancelled):
            bm25.repair(engine, should_stop=lambda: True)
    assert bm25.repair(engine).state == "ready"


def test_waiting_start_does_not_block_a_build(engine: Engine) -> None:
    key = {"key": locks.KEYWORD_INDEX}
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%advisory_lock%'"
        " AND pid <> pg_backend_pid()"
    )
    with (
        ThreadPoolExecutor(1) as pool,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as building,
    ):
        building.execute(text("SELECT pg_advisory_lock(:key)"), key)
        try:
            start = pool.submit(bm25.rebuild_after_start, engine)
            while not building.execute(text(waiting)).scalar():
                pass
            building.execute(text(f"REINDEX INDEX CONCURRENTLY {INDEX}"))
        finally:
            building.execute(text("SELECT pg_advisory_unlock(:key)"), key)
    assert start.result().state == "ready"


def test_processes_that_start_together_rebuild_once(
    own_server: EmbeddedPostgres, engine: Engine
) -> None:
    restart(own_server, engine, kill=False)
    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(lambda _: bm25.rebuild_after_start(engine), range(4)))
    assert len({state.rebuilt_at for state in states}) == 1


def test_a_healthy_index_is_not_changed(engine: Engine) -> None:
    before = bm25.repair(engine)
    assert bm25.repair(engine).rebuilt_at == before.rebuilt_at


def test_crashed_session_is_noticed_and_the_index_repaired(engine: Engine) -> None:
    before = search(engine, "罕见")
    with engine.connect() as connection:
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        os.kill(pid, signal.SIGKILL)
        connection.invalidate()
    engine.dispose()
    while not accepts_connections(engine):
        pass
    with engine.connect() as connection:
        assert indexes.read_state(connection).state == "stale"
    assert bm25.repair(engine).state == "ready"
    assert search(engine, "罕见") == before


def accepts_connections(engine: Engine) -> bool:
    try:
        with engine.connect() as connection:
            # The old server may still accept a session while it shuts down.
            return connection.execute(text("SELECT count(*) FROM bm25_index_state")).scalar()
    except DBAPIError:
        return False


def test_the_probe_notices_chunks_that_are_not_counted(
    own_server: EmbeddedPostgres, engine: Engine
) -> None:
    """After a build, old chunks still match; only the count shows that new ones are missing."""
    bm25.repair(engine)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"REINDEX INDEX {INDEX}"))
    add(engine, range(300, 600))
    assert answers(engine)
    restart(own_server, engine, kill=False)
    with engine.connect() as connection:
        if pg_textsearch_version(connection) < FIRST_DURABLE_PG_TEXTSEARCH:
            probe = probing.probe(connection)
            assert (probe.row_count, probe.counted, probe.answers) == (600, 300, False)
    bm25.repair(engine)
    assert answers(engine)


def test_new_parameters_rebuild_the_index_during_writes(engine: Engine) -> None:
    before = search(engine, "罕见")
    parameters = Bm25Parameters(k1=2.0, b=0.5)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [add(engine, range(n, n + 10)) for n in range(301, 401, 10)])
        state = bm25.rebuild_after_start(engine, parameters)
        writing.result()
    assert state.state == "ready"
    after = search(engine, "罕见")
    assert len(after) == 8
    assert after[0] != before[0]
    with engine.begin() as connection:
        connection.execute(text(f"DROP INDEX {INDEX}"))
        bm25.ensure_index(connection, parameters)
    assert search(engine, "罕见") == after, "as an index that was made with them"
    assert bm25.rebuild_after_start(engine, parameters).rebuilt_at == remade_at(engine)


def remade_at(engine: Engine) -> object:
    with engine.connect() as connection:
        return indexes.read_state(connection).rebuilt_at


BROKEN = {
    "index dropped": f"DROP INDEX {INDEX}",
    "extension dropped": "DROP EXTENSION pg_textsearch CASCADE",
    "extension dropped and back": "DROP EXTENSION pg_textsearch CASCADE;"
    " CREATE EXTENSION pg_textsearch",
    "index left half-built": f"UPDATE pg_index SET indisvalid = false"
    f" WHERE indexrelid = '{INDEX}'::regclass",
    "another kind of index": f"DROP INDEX {INDEX}; CREATE INDEX {INDEX} ON document_chunks (id)",
}


@pytest.mark.parametrize("how", BROKEN)
def test_broken_index_is_rebuilt(engine: Engine, how: str) -> None:
    before = search(engine, "罕见")
    with engine.begin() as connection:
        connection.execute(text(BROKEN[how]))
    with engine.connect() as connection:
        assert indexes.read_state(connection).state == "absent"
    state = bm25.repair(engine, DEFAULT_PARAMETERS)
    assert state.state == "ready"
    assert search(engine, "罕见") == before
    assert bm25.repair(engine).rebuilt_at == state.rebuilt_at


def test_a_damaged_index_is_rebuilt(own_server: EmbeddedPostgres, engine: Engine) -> None:
    before = search(engine, "罕见")
    with engine.connect() as connection:
        path = connection.execute(
            text("SELECT current_setting('data_directory') || '/' || pg_relation_filepath(:name)"),
            {"name": ALL_CHUNKS.name},
        ).scalar_one()
    engine.dispose()
    own_server.stop()
    file = Path(path)
    file.write_bytes(b"\x5a" * file.stat().st_size)
    own_server.start()
    assert bm25.repair(engine).state == "ready"
    assert search(engine, "罕见") == before


def test_rolled_back_inserts_are_detected_at_the_next_start(engine: Engine) -> None:
    bm25.repair(engine)
    with engine.connect() as connection:
        connection.execute(
            text(
                "INSERT INTO document_chunks (id, terms)"
                " SELECT g, '共同 罕见' FROM generate_series(1000, 1400) g"
            )
        )
        connection.rollback()
    with engine.connect() as connection:
        assert not probing.probe(connection).is_exact
    bm25.rebuild_after_start(engine)
    with engine.connect() as connection:
        assert probing.probe(connection).is_exact


def test_empty_table_is_not_a_fault(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM document_chunks"))
    assert answers(engine)
