"""When a component fails, search uses the rest, reports what is missing and recovers later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from portal import create_app
from portal.container import build_services
from portal.database import bm25
from portal.database.embedded import EmbeddedPostgres
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.errors import EmbedderUnavailable, RerankerUnavailable
from portal.reranking.time_boxed import TimeBoxed
from portal.services import Services
from portal.services.operations import health, setup
from portal.services.search import engine
from portal.services.search.reranking import rerank
from tests.conftest import Portal, make_settings
from tests.factories.servers.endpoint import Reply, dead_port, fake_endpoint, wait_until
from tests.factories.uploads import needs_bm25

LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
OFFICE = "The office closes at six. Visitors must sign in at the front desk."
QUESTION = "年假有几天"

EMBEDDER = EmbedderUnavailable.code
KEYWORDS = engine.KEYWORD_UNAVAILABLE
DIMENSIONS = 64
# Tolerance beyond the model's timeout, on a busy machine.
SLACK_S = 1.5

INDEX = bm25.ALL_CHUNKS.name
IS_VALID = f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{INDEX}'::regclass"


def ask(portal: Portal, query: str = QUESTION, **wishes: object) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query, **wishes))


def titles(outcome: SearchOutcome) -> list[str]:
    return [hit.title for hit in outcome.hits]


def execute(portal: Portal, statement: str) -> list[object]:
    with portal.services.database.begin() as session:
        result = session.execute(text(statement))
        return list(result.scalars()) if result.returns_rows else []


def fill(services: Services) -> Portal:
    portal = Portal.of(services)
    portal.add(LEAVE, name="leave.txt")
    portal.add(OFFICE, name="office.txt")
    return portal


@pytest.fixture
def filled(services: Services) -> Portal:
    return fill(services)


def is_whole(outcome: SearchOutcome) -> bool:
    """Return whether both legs ran and found the passage."""
    return (
        outcome.degraded == ()
        and outcome.search_method is SearchMode.HYBRID
        and titles(outcome)[:1] == ["leave"]
        and outcome.hits[0].text_score > 0
        and outcome.hits[0].vector_score is not None
    )


# --- the database server ------------------------------------------------------------------------


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
def test_keyword_index_whose_file_is_damaged_is_done_without_and_rebuilt(
    own_server: EmbeddedPostgres, on_own_server: Portal, damage: str
) -> None:
    portal = on_own_server
    [path] = execute(
        portal,
        f"SELECT current_setting('data_directory') || '/' || pg_relation_filepath('{INDEX}')",
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
        execute(
            filled,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        assert is_whole(ask(filled))


# --- the keyword index --------------------------------------------------------------------------

BREAK_KEYWORDS = {
    "index dropped": f"DROP INDEX {INDEX}",
    "extension dropped": "DROP EXTENSION pg_textsearch CASCADE",
}


@needs_bm25
@pytest.mark.parametrize("fault", BREAK_KEYWORDS)
def test_search_without_the_keyword_index_uses_meaning_reports_it_and_recovers(
    filled: Portal, fault: str
) -> None:
    execute(filled, BREAK_KEYWORDS[fault])
    broken = ask(filled)
    assert titles(broken)[:1] == ["leave"]
    assert broken.degraded == (KEYWORDS,)
    assert broken.search_method is SearchMode.VECTOR
    assert ask(filled, mode=SearchMode.VECTOR).degraded == ()

    setup.repair_keyword_index(filled.services)
    assert is_whole(ask(filled))


@needs_bm25
def test_index_that_is_invalid_costs_no_result_and_is_rebuilt(filled: Portal) -> None:
    """An interrupted CREATE INDEX CONCURRENTLY leaves an invalid index behind."""
    execute(
        filled,
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass",
    )
    assert titles(ask(filled))[:1] == ["leave"]
    setup.repair_keyword_index(filled.services)
    assert is_whole(ask(filled))
    assert execute(
        filled,
        IS_VALID,
    ) == [True]


@needs_bm25
def test_words_alone_without_their_index_rank_by_cover_density(filled: Portal) -> None:
    expected = titles(ask(filled, mode=SearchMode.KEYWORD))
    execute(filled, BREAK_KEYWORDS["index dropped"])
    outcome = ask(filled, mode=SearchMode.KEYWORD)
    assert titles(outcome) == expected
    assert outcome.degraded == ()


@needs_bm25
def test_index_that_forgot_chunks_is_noticed_and_rebuilt(filled: Portal) -> None:
    whole = ask(filled, mode=SearchMode.KEYWORD)
    execute(filled, "UPDATE bm25_index_state SET server_started_at = '2000-01-01', state = 'ready'")
    with filled.services.database.engine.connect() as connection:
        assert bm25.read_state(connection).state == "stale"
    assert titles(ask(filled))[:1] == ["leave"]

    setup.repair_keyword_index(filled.services)
    with filled.services.database.engine.connect() as connection:
        assert bm25.read_state(connection).state == "ready"
    assert is_whole(ask(filled))
    assert titles(ask(filled, mode=SearchMode.KEYWORD)) == titles(whole)


# --- the vectors --------------------------------------------------------------------------------


def test_results_are_the_same_without_the_vector_index(filled: Portal) -> None:
    before = ask(filled)
    indexes = execute(
        filled,
        "SELECT c.relname FROM pg_class c JOIN pg_am a ON a.oid = c.relam"
        " WHERE a.amname IN ('hnsw', 'ivfflat') AND c.relkind = 'i'",
    )
    assert indexes
    for index in indexes:
        execute(filled, f'DROP INDEX "{index}"')
    after = ask(filled)
    assert after.degraded == ()
    assert [(hit.chunk_id, hit.score) for hit in after.hits] == [
        (hit.chunk_id, pytest.approx(hit.score)) for hit in before.hits
    ]


# --- the embeddings endpoint --------------------------------------------------------------------


def endpoint_settings(url: str, **changes: object) -> dict[str, object]:
    chosen = {"provider": "openai", "model": "some-model", "api_base": url}
    return chosen | {"dimensions": DIMENSIONS} | changes


def timed(portal: Portal, **wishes: object) -> tuple[SearchOutcome, float]:
    started = time.monotonic()
    return ask(portal, **wishes), time.monotonic() - started


def is_by_words_alone(outcome: SearchOutcome) -> bool:
    return (
        outcome.degraded == (EMBEDDER,)
        and outcome.search_method is SearchMode.KEYWORD
        and titles(outcome)[:1] == ["leave"]
    )


@needs_bm25
def test_endpoint_at_two_and_a_half_seconds_costs_two_then_nothing_and_comes_back(
    make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        portal = fill(make_services(embedding=endpoint_settings(endpoint.url)))
        assert is_whole(ask(portal))

        endpoint.delay_s = 2.5
        for number in range(3):
            outcome, seconds = timed(portal, query=f"年假 {number}")
            assert is_by_words_alone(outcome)
            assert 1.9 < seconds < 2 + SLACK_S
        assert health.check_vector_store(portal.services)["embedder"] == "unavailable"

        asked = len(endpoint.requests)
        for number in range(5):
            outcome, seconds = timed(portal, query=f"带薪年假 {number}")
            assert is_by_words_alone(outcome)
            assert seconds < SLACK_S
        assert len(endpoint.requests) == asked, "the breaker let questions through"
        with pytest.raises(EmbedderUnavailable, match="is paused for"):
            ask(portal, "带薪年假 by meaning alone", mode=SearchMode.VECTOR)
        # The vector of an earlier query is cached, so both legs still run.
        assert is_whole(ask(portal))

        endpoint.delay_s = 0
        later = time.monotonic() + 60
        monkeypatch.setattr(_breaker(portal), "_clock", lambda: later)
        assert is_whole(ask(portal, "员工的年假"))
        assert health.check_vector_store(portal.services)["embedder"] == "ok"


def _breaker(portal: Portal):
    return portal.services.embedder._embedder._embedder._breaker  # type: ignore[attr-defined]


@needs_bm25
def test_endpoint_that_dies_and_comes_back_on_the_same_port(
    make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        portal = fill(make_services(embedding=endpoint_settings(endpoint.url)))
        port = endpoint.port
    for number in range(6):
        outcome, seconds = timed(portal, query=f"年假 {number}")
        assert is_by_words_alone(outcome)
        assert seconds < SLACK_S
    later = time.monotonic() + 60
    monkeypatch.setattr(_breaker(portal), "_clock", lambda: later)
    with fake_endpoint(port=port, dimensions=DIMENSIONS):
        assert is_whole(ask(portal, "年假 again"))


@needs_bm25
@pytest.mark.parametrize(
    "fault",
    ["trickling body", "trickling headers", "another dimension", "a web page", "a redirect"],
)
def test_endpoint_that_answers_nonsense_leaves_words(
    make_services: Callable[..., Services], fault: str
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        settings = endpoint_settings(endpoint.url, timeout_s=0.5)
        portal = fill(make_services(embedding=settings))
        if fault.startswith("trickling"):
            endpoint.trickle = fault.removeprefix("trickling ")
        endpoint.dimensions = 32 if fault == "another dimension" else DIMENSIONS
        endpoint.always = {
            "a web page": Reply(body=b"<html>", headers={"Content-Type": "text/html"}),
            "a redirect": Reply(302, headers={"Location": "https://elsewhere.example/"}),
        }.get(fault)
        outcome, seconds = timed(portal)
        assert is_by_words_alone(outcome)
        assert seconds < 0.5 + SLACK_S


UNUSABLE = {
    "dead endpoint": {"provider": "openai", "model": "some-model", "api_base": "{dead}"},
    "no such model": {"provider": "sentence-transformers", "model": "/nowhere/some-model"},
}


def unusable(fault: str) -> dict[str, str]:
    dead = f"http://127.0.0.1:{dead_port()}/v1"
    return {name: value.format(dead=dead) for name, value in UNUSABLE[fault].items()}


@needs_bm25
@pytest.mark.parametrize("fault", UNUSABLE)
def test_process_starts_and_finds_words_when_its_model_cannot_be_used_any_more(
    make_services: Callable[..., Services], fault: str
) -> None:
    # The documents were indexed while the model still worked.
    before = fill(make_services(embedding={"provider": "hashing", "model": "some-model"}))
    services = make_services(embedding=unusable(fault))
    list(setup.prepare_database(services))
    portal = Portal(services, before.admin)
    assert is_by_words_alone(ask(portal))
    assert health.check_vector_store(services)["status"] == "degraded"
    assert create_app(services).test_client().get("/health").status_code == 200

    report = setup.diagnose(services)
    [lack] = [lack for lack in report["lacks"] if "embedding model" in lack["what"]]
    assert report["fit"]
    assert "PORTAL_EMBEDDING__" in lack["remedy"] or "./run setup --local" in lack["remedy"]
    assert any("embedding model some-model" in line for line in setup.report_lines(report))


@pytest.mark.parametrize("fault", UNUSABLE)
def test_first_start_with_a_model_that_cannot_be_used_reports_it_and_continues(
    make_services: Callable[..., Services], fault: str
) -> None:
    *_, last = setup.prepare_database(make_services(embedding=unusable(fault)))
    assert last.startswith("The embedding model cannot be used")
    assert "search goes by words alone" in last


def test_confidence_is_calibrated_when_the_endpoint_is_back_after_the_start(
    make_services: Callable[..., Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        endpoint.always = Reply(503)
        services = make_services(embedding=endpoint_settings(endpoint.url))
        assert not services.calibration.ready
        endpoint.always = None
        portal = fill(services)
        monkeypatch.setattr(services.calibration, "_clock", lambda: time.monotonic() + 60)
        ask(portal)
        wait_until(lambda: services.calibration.ready, within_s=20, complaint="never calibrated")
        assert is_whole(ask(portal, "员工的年假"))


# --- the re-ranking model -----------------------------------------------------------------------


def test_re_ranking_model_that_is_not_there_leaves_the_order_and_doctor_reports_it(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(
        rerank={"provider": "sentence-transformers", "model": "/nowhere", "timeout_s": 30}
    )
    portal = fill(services)
    chunks = [SimpleNamespace(content=hit.excerpt) for hit in ask(portal).hits]
    found = rerank(services, QUESTION, chunks)
    assert found.order == tuple(range(len(chunks)))
    assert found.degraded == (RerankerUnavailable.code,)
    lacks = setup.diagnose(services)["lacks"]
    assert any("re-ranking model /nowhere" in lack["what"] for lack in lacks)


class Preferring:
    """A re-ranking model that waits for `gate` and then prefers passages with `word`."""

    name = "preferring"

    def __init__(self, word: str) -> None:
        self.word = word
        self.gate = threading.Event()
        self.gate.set()

    def load(self) -> None:
        pass

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        self.gate.wait(30)
        return [float(self.word in chunk) for chunk in chunks]


def test_re_ranking_model_that_hangs_costs_its_time_once_and_leaves_the_order(
    make_services: Callable[..., Services],
) -> None:
    # A cached result would not need the model that hangs.
    services = make_services(rerank={"timeout_s": 0.5}, search={"cache_ttl_s": 0})
    plain = fill(services)
    model = Preferring("front desk")
    portal = Portal(replace(services, reranker=TimeBoxed(model)), plain.admin)
    fused = ask(plain)
    assert titles(fused) == ["leave", "office"]

    reranked = ask(portal)
    assert titles(reranked) == ["office", "leave"]
    assert reranked.degraded == ()
    assert [hit.rerank_score for hit in reranked.hits] == [1.0, 0.0]

    model.gate.clear()
    outcome, seconds = timed(portal)
    assert seconds < 0.5 + SLACK_S
    at_once, _ = timed(portal)
    for late in (outcome, at_once):
        assert titles(late) == titles(fused)
        assert late.degraded == (RerankerUnavailable.code,)
        assert [hit.score for hit in late.hits] == pytest.approx([hit.score for hit in fused.hits])

    model.gate.set()
    wait_until(
        lambda: titles(ask(portal)) == ["office", "leave"],
        within_s=10,
        complaint="the model was not used again",
    )
