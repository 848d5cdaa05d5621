"""Over HTTP: scores add up, thresholds hide no exact match, each search uses the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.domain.search import Fusion, Normalisation, SearchMode, SearchRequest
from portal.services.people import accounts
from portal.services.search import dynamic_config, engine
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.uploads import needs_bm25

pytestmark = needs_bm25

Search = Callable[..., Any]


@pytest.fixture
def search(portal: Portal, client: FlaskClient) -> Search:
    def ask(query: str, *, path: str = "/api/knowledge/search", **body: Any) -> Any:
        name = "query" if path.endswith(("/knowledge/search", "/text")) else "query_text"
        answer = client.post(path, json={name: query, **body}, headers=portal.headers())
        assert answer.status_code == 200, answer.json
        return answer.get_json()

    return ask


@pytest.fixture
def handbook(portal: Portal) -> Portal:
    portal.add("The form HR-4711 is handed in before a holiday.", name="form.txt")
    portal.add("Every employee has fifteen days of annual leave.", name="leave.txt")
    portal.add("The canteen serves soup at noon.", name="soup.txt")
    return portal


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_exact_match_never_disappears_behind_a_threshold(
    handbook: Portal, search: Search, mode: str
) -> None:
    found = search("HR-4711", mode=mode, threshold=1.0)
    assert [(result["title"], result["source"]) for result in found["results"]] == [
        ("form", "keyword")
    ]
    assert found["search_method"] == "keyword"
    assert found["total_count"] == 1


@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_threshold_cuts_confidence_and_words_fill_up(
    handbook: Portal, search: Search, mode: str
) -> None:
    query = "How many days of annual leave before soup?"
    everything = search(query, mode="hybrid")["results"]
    levels = sorted({one["confidence"] for one in everything})
    for threshold in (0.0, *levels, 1.0):
        results = search(query, mode=mode, threshold=threshold)["results"]
        for result in results:
            assert result["confidence"] >= threshold or result["source"] == "keyword"
            assert result["source"] != "keyword" or result["text_rank"] is not None
        assert {"leave", "soup"} <= {result["title"] for result in results}
        scores = [result["score"] for result in results]
        assert scores == sorted(scores, reverse=True)
    assert search("xylophone", mode=mode, threshold=1.0)["results"] == []


def test_best_keyword_score_is_1_whatever_other_documents_are_stored(
    handbook: Portal, search: Search
) -> None:
    def scores() -> list[float]:
        return [result["score"] for result in search("annual leave", mode="keyword")["results"]]

    assert scores()[0] == 1.0
    for number in range(5):
        handbook.add(f"Quinces ripen late in the garden number {number}.", name=f"{number}.txt")
    assert scores()[0] == 1.0
    kept = search("annual leave soup", mode="keyword", threshold=0.99)["results"]
    assert [one["score"] for one in kept] == [1.0]


@for_each("mode", SearchMode)
@for_each("fusion", Fusion)
def test_parts_add_up_to_the_score_in_every_fusion(
    handbook: Portal, search: Search, fusion: Fusion, mode: SearchMode
) -> None:
    query = "annual leave at noon"
    assert search(query)["results"][0]["parts"] is None
    for normalisation in Normalisation:
        found = search(query, mode=mode, fusion=fusion, normalisation=normalisation, explain=True)
        assert found["results"]
        for result in found["results"]:
            parts = result["parts"]
            total = sum(parts.values())
            assert total == pytest.approx(result["score"], abs=1e-12)
            assert (result["bm25"] > 0) == (result["text_score"] > 0)
    data = search(query, path="/api/v1/search/hybrid", fusion_method="weighted_sum")["data"]
    for result in data["results"]:
        parts, used = result["parts"], data["used"]
        assert parts["vector"] == pytest.approx(used["vector_weight"] * result["vector_score"])
        assert parts["text"] == pytest.approx(used["text_weight"] * result["text_score"])
        assert result["combined_score"] == pytest.approx(parts["vector"] + parts["text"])


def test_every_search_uses_the_configuration_and_reports_it(
    handbook: Portal, search: Search
) -> None:
    path = "/api/v1/search/hybrid"
    default = {
        "top_k": 10, "fusion_method": "weighted_sum", "vector_weight": 0.7, "text_weight": 0.3,
        "rrf_k": 60, "similarity_threshold": 0.0,
    }  # fmt: skip
    assert search("annual leave", path=path)["data"]["used"] == pytest.approx(default)
    dynamic_config.change(
        handbook.services,
        handbook.admin,
        {"semantic_weight": 0.2, "bm25_weight": 0.6, "rrf_k": 7, "top_n": 2, "fusion": "rrf"},
    )
    data = search("annual leave", path=path)["data"]
    assert data["used"] == pytest.approx(
        default | {"top_k": 2, "vector_weight": 0.25, "text_weight": 0.75, "rrf_k": 7,
                   "fusion_method": "rrf"}
    )  # fmt: skip
    assert len(data["results"]) == 2
    assert data["results"][0]["combined_score"] == pytest.approx(2 / 8)
    for name in ("semantic", "text"):
        assert search("leave", path=f"/api/v1/search/{name}")["data"]["top_k"] == 2
    asked = search("annual leave", path=path, text_weight=0.2, top_k=3, rrf_k=60)["data"]["used"]
    assert (asked["top_k"], asked["text_weight"], asked["rrf_k"]) == (3, 0.5, 60)
    used = search("annual leave")["used"]
    assert used["weights"] == {"vector": 0.25, "text": 0.75}
    assert (used["top_n"], used["fusion"], used["rrf_k"]) == (2, "rrf", 7)


@pytest.mark.parametrize("fusion", Fusion)
@pytest.mark.parametrize("boost", [0.05, 0.5])
def test_preferred_domain_is_compared_without_case_and_passes_near_equals_alone(
    portal: Portal, fusion: Fusion, boost: float
) -> None:
    portal.add("The deadline for this report is Friday at noon.", name="a.txt", domain="Law")
    portal.add("Friday at noon is the deadline for this report.", name="b.txt", domain="biology")
    for number in range(4):
        text = f"A report of the cells of plant {number} under glass."
        portal.add(text, name=f"cells {number}.txt", domain="biology")
    dynamic_config.change(portal.services, portal.admin, {"domain_boost": boost})

    def titles(query: str, domain: str) -> list[str]:
        user = replace(portal.admin, preferred_domain=domain)
        request = SearchRequest(query, fusion=fusion, explain=True)
        hits = engine.search(portal.services, user, request).hits
        assert all(hit.parts.score == hit.score for hit in hits)
        return [hit.title for hit in hits]

    for domain, first in (("Biology", "b"), ("BIOLOGY", "b"), ("law", "a")):
        assert titles("deadline of this report on Friday at noon", domain)[0] == first
    # The preferred domain never lifts an irrelevant document above the answer.
    portal.add("Invoices are paid within thirty days.", name="pay.txt", domain="Law")
    assert titles("When are invoices paid, within how many days?", "Biology")[0] == "pay"


def test_page_shows_as_many_results_as_are_configured_and_more_without_javascript(
    portal: Portal,
) -> None:
    for number in range(14):
        portal.add(f"Quince number {number} ripens in month {number}.", name=f"q{number}.txt")
    client = portal.client(accounts.find_user(portal.services, "admin"))

    def count(address: str) -> tuple[int, str]:
        page = client.get(address).get_data(as_text=True)
        return page.count('data-testid="search-result"'), page

    shown, page = count("/search?q=quince")
    assert shown == 5
    assert 'data-testid="show-more"' in page
    assert 'href="/search?q=quince&amp;n=15"' in page
    shown, page = count("/search?q=quince&n=15")
    assert shown == 14
    assert 'data-testid="show-more"' not in page
    assert 'data-testid="show-more"' not in count("/search?q=quince&n=14")[1], "these are all"
    dynamic_config.change(portal.services, portal.admin, {"top_n": 3})
    assert count("/search?q=quince")[0] == 3
