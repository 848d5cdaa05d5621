"""Search without its models: the embeddings endpoint, the re-ranking model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from portal import create_app
from portal.domain.search import SearchMode, SearchOutcome
from portal.errors import EmbedderUnavailable, RerankerUnavailable
from portal.reranking.time_boxed import TimeBoxed
from portal.services import Services
from portal.services.operations import health, setup
from portal.services.search.reranking import rerank
from tests.conftest import Portal
from tests.factories.servers.endpoint import Reply, dead_port, fake_endpoint, wait_until
from tests.factories.uploads import needs_bm25
from tests.integration.search.degraded.asking import QUESTION, ask, fill, is_whole, titles

EMBEDDER = EmbedderUnavailable.code
DIMENSIONS = 64
# Tolerance beyond the model's timeout, on a busy machine.
SLACK_S = 1.5


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
    return portal.services.embedder._embedder._breaker  # type: ignore[attr-defined]


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
def test_invalid_response_of_the_endpoint_leaves_keyword_search(
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


def test_missing_reranker_keeps_the_order_and_doctor_reports_it(
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
    """A re-ranking model that waits for `gate` and then prefers chunks with `word`."""

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


def test_hanging_reranker_costs_its_timeout_once_and_keeps_the_order(
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
