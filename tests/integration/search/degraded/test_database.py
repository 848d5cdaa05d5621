"""Search without parts of the database: connections, the keyword index, the vector index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.container import build_services
from portal.database.bm25 import indexes
from portal.database.embedded import EmbeddedPostgres
from portal.domain.search import SearchMode
from portal.domain.search.bm25 import ALL_CHUNKS
from portal.domain.search.degraded import KEYWORD_INCOMPLETE, KEYWORD_UNAVAILABLE
from portal.services import Services
from portal.services.operations import health, setup
from portal.web.search.explanations import DEGRADED_WORDS
from tests.conftest import Portal, make_settings
from tests.factories.uploads import needs_bm25
from tests.integration.search.degraded.asking import ask, fill, is_whole, titles

KEYWORDS = KEYWORD_UNAVAILABLE
INDEX = ALL_CHUNKS.name
IS_VALID = f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{INDEX}'::regclass"


@pytest.fixture
def filled(services: Services) -> Portal:
    return fill(services)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    quick = {"shared_buffers": "64MB", "fsync": "off", "autovacuum": "off"}
    server = EmbeddedPostgres(tmp_path / "own", extra_settings=quick)
    yield server
    server.stop()


@pytest.fixture
def on_own_server(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Portal]:
    services = build_services(make_settings(tmp_path, own_server.start()))
    list(setup.prepare_database(services))
    yield fill(services)
    services.database.dispose()


@pytest.mark.slow
def test_search_continues_in_the_same_process_when_the_server_was_restarted(
    own_server: EmbeddedPostgres, on_own_server: Portal
) -> None:
    portal = on_own_server
    before = ask(portal)
    assert is_whole(before)

    own_server.stop()
    assert health.check(portal.services)["status"] == "unavailable"
    own_server.start()

    # The pool still holds connections to the stopped server; the first search must get a live one.
    at_once = ask(portal)
    assert titles(at_once)[:1] == ["leave"]
    assert set(at_once.degraded) <= {KEYWORDS}

    setup.repair_keyword_index(portal.services)
    after = ask(portal)
    assert is_whole(after)
    assert [hit.score for hit in after.hits] == pytest.approx([hit.score for hit in before.hits])


@needs_bm25
@pytest.mark.slow
@pytest.mark.parametrize("damage", ["zeros", "noise", "cut"])
def test_damaged_keyword_index_is_bypassed_and_rebuilt(
    own_server: EmbeddedPostgres, on_own_server: Portal, damage: str
) -> None:
    portal = on_own_server
    [path] = portal.scalars(
        f"SELECT current_setting('data_directory') || '/' || pg_relation_filepath('{INDEX}')"
    )
    own_server.stop()
    file = Path(str(path))
    size = file.stat().st_size
    damaged = {"zeros": bytes(size), "noise": b"\xa5" * size, "cut": b""}[damage]
    with file.open("r+b") as pages:  # Written in place, so that the server keeps the file open.
        pages.truncate(len(damaged))
        pages.write(damaged)
    own_server.start()

    at_once = ask(portal)
    assert titles(at_once)[:1] == ["leave"]
    setup.repair_keyword_index(portal.services)
    assert is_whole(ask(portal))


def test_connections_that_were_cut_are_replaced(filled: Portal) -> None:
    assert is_whole(ask(filled))
    for _ in range(3):
        filled.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert is_whole(ask(filled))


BREAK_KEYWORDS = {
    "index dropped": f"DROP INDEX {INDEX}",
    "extension dropped": "DROP EXTENSION pg_textsearch CASCADE",
}


@needs_bm25
@pytest.mark.parametrize("fault", BREAK_KEYWORDS)
def test_search_without_the_keyword_index_uses_meaning_reports_it_and_recovers(
    filled: Portal, fault: str
) -> None:
    filled.execute(BREAK_KEYWORDS[fault])
    broken = ask(filled)
    assert titles(broken)[:1] == ["leave"]
    assert broken.degraded == (KEYWORDS,)
    assert broken.search_method is SearchMode.VECTOR
    assert ask(filled, mode=SearchMode.VECTOR).degraded == ()

    setup.repair_keyword_index(filled.services)
    assert is_whole(ask(filled))


@needs_bm25
def test_invalid_index_loses_no_result_and_is_rebuilt(filled: Portal) -> None:
    """An interrupted CREATE INDEX CONCURRENTLY leaves an invalid index behind."""
    filled.execute(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass")
    assert titles(ask(filled))[:1] == ["leave"]
    setup.repair_keyword_index(filled.services)
    assert is_whole(ask(filled))
    assert filled.scalars(IS_VALID) == [True]


@needs_bm25
def test_keyword_search_without_its_index_ranks_by_cover_density(filled: Portal) -> None:
    expected = ask(filled, mode=SearchMode.KEYWORD)
    assert expected.degraded == ()
    filled.execute(BREAK_KEYWORDS["index dropped"])
    outcome = ask(filled, mode=SearchMode.KEYWORD)
    assert titles(outcome) == titles(expected)
    assert outcome.degraded == (KEYWORD_INCOMPLETE,)
    assert KEYWORD_INCOMPLETE in DEGRADED_WORDS


@needs_bm25
def test_stale_keyword_index_is_noticed_and_rebuilt(filled: Portal) -> None:
    whole = ask(filled, mode=SearchMode.KEYWORD)
    filled.execute("UPDATE bm25_index_state SET server_started_at = '2000-01-01', state = 'ready'")
    with filled.services.database.engine.connect() as connection:
        assert indexes.read_state(connection).state == "stale"
    assert titles(ask(filled))[:1] == ["leave"]

    setup.repair_keyword_index(filled.services)
    with filled.services.database.engine.connect() as connection:
        assert indexes.read_state(connection).state == "ready"
    assert is_whole(ask(filled))
    assert titles(ask(filled, mode=SearchMode.KEYWORD)) == titles(whole)


def test_results_are_the_same_without_the_vector_index(filled: Portal) -> None:
    before = ask(filled)
    indexes = filled.scalars(
        "SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
        " WHERE a.amname IN ('hnsw', 'ivfflat') AND c.relkind = 'i'"
    )
    assert indexes
    for index in indexes:
        filled.execute(f'DROP INDEX "{index}"')
    after = ask(filled)
    assert after.degraded == ()
    assert [(hit.chunk_id, hit.score) for hit in after.hits] == [
        (hit.chunk_id, pytest.approx(hit.score)) for hit in before.hits
    ]
