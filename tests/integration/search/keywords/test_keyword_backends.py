"""Searches follow the same rules with every keyword backend and report what is missing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from structlog.testing import capture_logs

from portal.domain.documents import Visibility
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.domain.search.bm25 import ALL_CHUNKS
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE
from portal.services import Services
from portal.services.operations import setup
from portal.services.search import engine
from portal.store.search.keywords import index as keyword_index
from tests.conftest import Portal

LIBRARY = {
    "年假规定.txt": "员工每年有十五天带薪年假。病假需要医生证明。",
    "handbook.md": "The office closes at six. Visitors must sign in at the front desk.",
    "draft.txt": "A draft about the office and its front door.",
}


@pytest.fixture
def open_portal(make_services: Callable[..., Services]) -> Callable[[str], Portal]:
    def make(backend: str) -> Portal:
        services = make_services(search={"keyword_backend": backend})
        portal = Portal.of(services)
        for name, content in LIBRARY.items():
            portal.add(content, name=name)
        return portal

    return make


def ask(portal: Portal, query: str, **wishes: object) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query, **wishes))


def titles(outcome: SearchOutcome) -> list[str]:
    return [hit.title for hit in outcome.hits]


@pytest.mark.parametrize(
    "backend", [pytest.param("pg_textsearch", marks=pytest.mark.bm25), "tsvector"]
)
def test_words_rank_and_operators_narrow_with_every_backend(
    open_portal: Callable[[str], Portal], backend: str
) -> None:
    portal = open_portal(backend)
    words = {"mode": SearchMode.KEYWORD}
    assert titles(ask(portal, "年假有几天", **words)) == ["年假规定"]
    assert titles(ask(portal, "帶薪年假", **words)) == ["年假规定"]
    assert set(titles(ask(portal, "office", **words))) == {"handbook", "draft"}
    assert titles(ask(portal, "office -draft", **words)) == ["handbook"]
    assert titles(ask(portal, '"front desk" office', **words)) == ["handbook"]
    assert titles(ask(portal, "office type:txt", **words)) == ["draft"]
    assert titles(ask(portal, "office title:hand")) == ["handbook"]
    assert titles(ask(portal, "zebra", **words)) == []
    outcome = ask(portal, "office")
    assert outcome.search_method is SearchMode.HYBRID
    assert not outcome.degraded


@pytest.mark.parametrize("backend", ["pg_textsearch", "tsvector", "off"])
def test_foreign_chunks_stay_hidden_with_every_backend(
    open_portal: Callable[[str], Portal], backend: str
) -> None:
    portal = open_portal(backend)
    owner = portal.user("owner")
    portal.add("office secrets", name="secret.txt", owner=owner, visibility=Visibility.PRIVATE)
    other = portal.user("other")
    for query in ("office secrets", '"office secrets"', "title:secret secrets"):
        outcome = engine.search(portal.services, other, SearchRequest(query))
        assert "secret" not in titles(outcome)


def test_without_a_backend_vectors_answer_and_operators_still_narrow(
    open_portal: Callable[[str], Portal],
) -> None:
    portal = open_portal("off")
    outcome = ask(portal, "office -draft")
    assert "handbook" in titles(outcome)
    assert "draft" not in titles(outcome)
    assert outcome.search_method is SearchMode.VECTOR
    assert KEYWORD_UNAVAILABLE in outcome.degraded


@pytest.mark.bm25
def test_a_lost_index_is_reported_once_and_its_return_too(
    open_portal: Callable[[str], Portal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_index, "_notice", keyword_index._Notice())
    # A logger used by another test keeps its old output.
    monkeypatch.setattr(keyword_index, "log", structlog.get_logger("keyword_index"))
    portal = open_portal("auto")
    portal.execute(f"DROP INDEX {ALL_CHUNKS.name}")
    with capture_logs() as logs:
        for _ in range(3):
            assert KEYWORD_UNAVAILABLE in ask(portal, "office").degraded
        setup.repair_keyword_index(portal.services)
        for _ in range(3):
            assert not ask(portal, "office").degraded
    told = [entry["event"] for entry in logs if entry["event"].startswith("hybrid search")]
    assert told == [
        "hybrid search is semantic only; searches for words alone rank by ts_rank_cd",
        "hybrid search uses words again",
    ]
