"""Without pg_textsearch, keyword search still works, hybrid is semantic, and it is logged once.

The extension is dropped if the server has it, so that the tests run the same on any server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from sqlalchemy import text
from structlog.testing import capture_logs

from portal import create_app
from portal.domain.search.semantic import SemanticChunk
from portal.integrations.chunk_stores import open_postgresql
from portal.processes.cli import main
from portal.services import Services
from portal.services.operations import setup, starting
from portal.services.search.programs import semantic
from portal.store.search.keywords import index as keyword_index
from tests.conftest import Portal
from tests.factories.servers.endpoint import fake_endpoint

LIBRARY = {
    "年假规定.txt": "员工每年有十五天带薪年假。病假需要医生证明。",
    "handbook.md": "The office closes at six. Visitors must sign in at the front desk.",
    "form.txt": "Laptops are lent by the service desk against form HR-4711.",
}
SEMANTIC_ONLY = "hybrid search is semantic only; searches for words alone rank by ts_rank_cd"


def without_bm25(services: Services) -> Portal:
    """Return a portal with three documents on a server that ranks words by `ts_rank_cd` only."""
    with services.database.begin() as session:
        session.execute(text("DROP EXTENSION IF EXISTS pg_textsearch CASCADE"))
    portal = Portal.of(services)
    for name, content in LIBRARY.items():
        portal.add(content, name=name)
    return portal


@pytest.fixture
def plain(services: Services) -> Portal:
    return without_bm25(services)


@pytest.fixture
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset what this process has logged once, as in a new process."""
    monkeypatch.setattr(keyword_index, "_notice", keyword_index._Notice())
    monkeypatch.setattr(semantic, "_announced", {})
    for module in (keyword_index, semantic, starting):
        monkeypatch.setattr(module, "log", structlog.get_logger("fresh"))


def warnings(log: list[Any]) -> list[str]:
    return [entry["event"] for entry in log if entry["log_level"] == "warning"]


def post(portal: Portal, path: str, **body: object) -> Any:
    client = create_app(portal.services).test_client()
    answer = client.post(path, json=body, headers=portal.headers())
    assert answer.status_code == 200, answer.json
    return answer.json


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("年假有几天", "年假规定"),
        ("帶薪年假", "年假规定"),
        ("HR-4711", "form"),
        ("visitor", "handbook"),
    ],
)
def test_every_search_by_words_answers(plain: Portal, query: str, title: str) -> None:
    found = post(plain, "/api/knowledge/search", query=query, mode="keyword", explain=True)
    assert [result["title"] for result in found["results"]] == [title]
    assert found["results"][0]["score"] == 1
    assert found["search_method"] == "keyword"
    chunks = post(plain, "/api/v1/search/text", query=query)["data"]["results"]
    assert len(chunks) == 1
    hits = post(plain, "/v1/search", query=query, weights={"text": 1, "vector": 0})["hits"]
    assert [hit["final_score"] for hit in hits][:2] == [1]
    client = create_app(plain.services).test_client()
    page = client.get(
        "/search", query_string={"q": query, "mode": "keyword"}, headers=plain.headers()
    ).get_data(as_text=True)
    assert 'data-testid="search-result"' in page


def test_hybrid_is_semantic_and_reports_it(plain: Portal) -> None:
    found = post(plain, "/api/knowledge/search", query="年假有几天")
    assert found["search_method"] == "vector"
    assert found["results"]
    assert {result["source"] for result in found["results"]} == {"vector"}


def test_hybrid_without_a_model_falls_back_to_words(make_services: Callable[..., Services]) -> None:
    with fake_endpoint(dimensions=64) as endpoint:
        embedding = {
            "provider": "openai", "model": "some", "api_base": endpoint.url, "dimensions": 64,
        }  # fmt: skip
        portal = without_bm25(make_services(embedding=embedding))
    found = post(portal, "/api/knowledge/search", query="HR-4711")
    assert [result["title"] for result in found["results"]] == ["form"]
    assert found["search_method"] == "keyword"


def test_tsvector_setting_makes_hybrid_search_use_both_legs(
    make_services: Callable[..., Services],
) -> None:
    portal = without_bm25(make_services(search={"keyword_backend": "tsvector"}))
    found = post(portal, "/api/knowledge/search", query="HR-4711")
    assert (found["search_method"], found["results"][0]["title"]) == ("hybrid", "form")
    assert found["results"][0]["source"] == "hybrid"


@pytest.mark.parametrize("backend", ["auto", "tsvector"])
def test_chunk_store_finds_words(make_services: Callable[..., Services], backend: str) -> None:
    services = make_services(search={"keyword_backend": backend})
    without_bm25(services)
    store = open_postgresql("notes", connection=services.settings, hybrid=True)
    store.upsert(SemanticChunk(name, content) for name, content in LIBRARY.items())
    outcome = store.search("HR-4711", 1)
    assert outcome.is_hybrid_enabled is (backend == "tsvector")
    assert outcome.results
    if backend == "tsvector":
        assert outcome.results[0].metadata["sparse_rank"] == 1


# --- what is reported ---------------------------------------------------------------------------


def of(log: list[Any], event: str) -> Any:
    (found,) = [entry for entry in log if entry["event"] == event]
    return found


@pytest.mark.usefixtures("fresh_process")
@pytest.mark.parametrize("is_requested", ["", "1"])
def test_start_warns_once_and_logs_what_is(
    make_services: Callable[..., Services], is_requested: str
) -> None:
    portal = without_bm25(make_services(use_hybrid_search=is_requested))
    with capture_logs() as log:
        setup.diagnose(portal.services)  # The checks of `portal serve`.
        assert warnings(log) == []
        create_app(portal.services)
        assert warnings(log) == [SEMANTIC_ONLY]
        for mode in ("hybrid", "keyword"):
            post(portal, "/api/knowledge/search", query="office", mode=mode)
        post(portal, "/api/semantic_search", query="office")
    assert warnings(log) == [SEMANTIC_ONLY]
    assert "install pg_textsearch" in of(log, SEMANTIC_ONLY)["remedy"]
    assert "PORTAL_SEARCH__KEYWORD_BACKEND=tsvector" in of(log, SEMANTIC_ONLY)["remedy"]
    told = of(log, "semantic_search_configured")
    assert (told["hybrid_requested"], told["hybrid_enabled"]) == (bool(is_requested), False)
    assert {
        (told["method"], told["keyword_backend"])
        for told in log
        if told["event"] == "search_configured"
    } == {("semantic", "tsvector")}


@pytest.mark.usefixtures("fresh_process")
@pytest.mark.parametrize(
    "backend", [pytest.param("pg_textsearch", marks=pytest.mark.bm25), "tsvector"]
)
def test_start_with_both_legs_warns_of_nothing(
    make_services: Callable[..., Services], backend: str
) -> None:
    services = make_services(search={"keyword_backend": backend}, use_hybrid_search="1")
    with capture_logs() as log:
        create_app(services)
    assert warnings(log) == []
    told = of(log, "search_configured")
    assert (told["method"], told["keyword_backend"]) == ("hybrid", backend)
    assert of(log, "semantic_search_configured")["hybrid_enabled"] is True


def test_health_distinguishes_keyword_and_hybrid_search(plain: Portal) -> None:
    body = create_app(plain.services).test_client().get("/health/vector_store").json
    assert (body["status"], body["keyword_backend"], body["hybrid"]) == (
        "degraded", "tsvector", False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("backend", "ranking", "hybrid", "lacks"),
    [
        ("auto", "ts_rank_cd (tsvector)", "semantic only", True),
        ("tsvector", "ts_rank_cd (tsvector)", "semantic and words", False),
        ("off", "off", "semantic only", False),
    ],
)
def test_doctor_reports_how_searches_rank(
    plain: Portal,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    ranking: str,
    hybrid: str,
    *,
    lacks: bool,
) -> None:
    for name, value in {
        "DATABASE_URL": database_url,
        "PORTAL_DATA_DIR": str(tmp_path),
        "PORTAL_SECRET_KEY": plain.services.secret_key,
        "PORTAL_EMBEDDING__PROVIDER": "hashing",
        "PORTAL_SEARCH__KEYWORD_BACKEND": backend,
    }.items():
        monkeypatch.setenv(name, value)
    lines = CliRunner().invoke(main, ["doctor"], catch_exceptions=False).stdout.splitlines()
    assert f"search by words: {ranking}; BM25 index absent" in lines
    assert f"hybrid search: {hybrid}" in lines
    assert any(line.startswith("lacking:") and "pg_textsearch" in line for line in lines) is lacks
