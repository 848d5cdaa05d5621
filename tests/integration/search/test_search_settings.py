"""Each search setting takes effect, tested through HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.services import Services
from portal.services.documents.ingestion import reanalysis
from portal.services.models import catalog
from portal.services.operations import health, setup
from portal.services.search import dynamic_config
from portal.settings import load_settings
from portal.store.embedding_models.vector_index import standing_indexes
from portal.text.terms.analyser import analyse_in
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.models import reindex
from tests.factories.uploads import needs_bm25

Ask = Callable[..., Any]


@pytest.fixture
def ask_with(make_services: Callable[..., Services], portal: Portal) -> Callable[..., Ask]:
    """Return a function that searches a portal with these settings."""
    for number in range(12):
        portal.add(f"Annual leave, rule {number}: {'ask early ' * number}", name=f"{number}.txt")

    def make(**search: Any) -> Ask:
        client = create_app(make_services(search=search)).test_client()

        def ask(path: str, *, status: int = 200, **body: Any) -> Any:
            answer = client.post(path, json=body, headers=portal.headers())
            assert answer.status_code == status, answer.json
            return answer.json if status != 200 else answer.json.get("data", answer.json)

        return ask

    return make


KINDS = {
    "semantic": {"query_text": "annual leave"},
    "text": {"query": "annual leave"},
    "hybrid": {"query_text": "annual leave"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_default_top_k_is_what_a_request_without_one_gets(
    ask_with: Callable[..., Ask], kind: str
) -> None:
    path = f"/api/v1/search/{kind}"
    assert len(ask_with()(path, **KINDS[kind])["results"]) == 10
    ask = ask_with(default_top_k=3)
    assert len(ask(path, **KINDS[kind])["results"]) == 3
    assert len(ask(path, **KINDS[kind], top_k=5)["results"]) == 5


def test_max_top_k_is_the_most_that_a_request_may_want(ask_with: Callable[..., Ask]) -> None:
    ask = ask_with(max_top_k=4, default_top_k=2)
    for kind, body in KINDS.items():
        assert len(ask(f"/api/v1/search/{kind}", **body, top_k=4)["results"]) == 4
        refused = ask(f"/api/v1/search/{kind}", **body, top_k=5, status=422)
        assert "top_k is at most 4" in refused["error"]["message"]


def test_similarity_threshold_holds_where_a_request_does_not_say(
    ask_with: Callable[..., Ask],
) -> None:
    body = {"query_text": "Annual leave, rule 0:"}
    every = ask_with()("/api/v1/search/semantic", **body)["results"]
    cut = sorted(one["similarity"] for one in every)[len(every) // 2]
    ask = ask_with(similarity_threshold=cut)
    kept = ask("/api/v1/search/semantic", **body)["results"]
    assert kept == [one for one in every if one["similarity"] >= cut]
    assert len(ask("/api/v1/search/semantic", **body, similarity_threshold=0)["results"]) == 10


@needs_bm25
def test_hybrid_settings_apply_until_an_administrator_overrides_them(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    portal.add("Annual leave")
    services = make_services(
        search={"hybrid": {"vector_weight": 0.2, "text_weight": 0.6, "fusion_method": "rrf"}}
    )
    client, headers = create_app(services).test_client(), portal.headers()
    body = {"query": "annual leave", "explain": True}

    def used() -> tuple[str, dict[str, float]]:
        shown = client.post("/api/knowledge/search", json=body, headers=headers).json["explanation"]
        return shown["fusion"], shown["weights"]

    assert used() == ("rrf", {"vector": 0.25, "text": 0.75})
    chunks = client.post(
        "/api/v1/search/hybrid", json={"query_text": "annual leave"}, headers=headers
    ).json["data"]["used"]
    assert (chunks["fusion_method"], chunks["rrf_k"]) == ("rrf", 60)
    assert chunks["text_weight"] == pytest.approx(3 * chunks["vector_weight"])
    dynamic_config.change(services, portal.admin, {"fusion": "weighted", "bm25_weight": 0.2})
    assert used() == ("weighted", {"vector": 0.5, "text": 0.5})
    # A value set back to the default follows the setting again.
    dynamic_config.change(services, portal.admin, {"bm25_weight": 0.6})
    other = make_services(search={"hybrid": {"text_weight": 0.9}})
    assert dynamic_config.show(other, portal.admin).bm25_weight == 0.9


def test_vector_store_has_a_name_without_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECTOR_STORE_ENABLED", "false")
    assert load_settings().vector_store_enabled is False
    monkeypatch.setenv("PORTAL_VECTOR_STORE_ENABLED", "true")
    assert load_settings().vector_store_enabled is True


def test_chat_and_the_search_page_go_by_words_without_a_vector_store(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    portal.add("New employees have fifteen days of annual leave.", title="Leave rules")
    client = create_app(make_services(vector_store_enabled=False)).test_client()
    headers = portal.headers() | {"Accept-Language": "en"}
    conversation = client.post("/api/conversations", json={}, headers=headers).json["id"]
    answer = client.post(
        f"/api/conversations/{conversation}/messages",
        json={"content": "How many days of annual leave do new employees have?"},
        headers=headers,
    )
    assert "fifteen days" in answer.json["content"]
    assert [citation["title"] for citation in answer.json["citations"]] == ["Leave rules"]
    page = client.get("/search?q=annual+leave", headers=headers)
    assert page.status_code == 200
    assert "Leave rules" in page.text
    assert "switched off on this server" in page.text


# --- what has no effect, and the index ------------------------------------------------------------


@needs_bm25
def test_start_and_doctor_name_settings_without_effect(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    services = make_services(search={"text": {"weights": "1,1,1,1"}, "hybrid": {"rrf_k": 9}})
    dynamic_config.change(services, portal.admin, {"rrf_k": 7})
    names = ["PORTAL_SEARCH__TEXT__WEIGHTS", "PORTAL_SEARCH__HYBRID__RRF_K"]
    said = [line for line in setup.prepare_database(services) if "has no effect" in line]
    assert [line.split()[0] for line in said] == names
    assert "an administrator has set rrf_k to 7" in said[1]
    lacks = [lack["what"] for lack in setup.diagnose(services)["lacks"]]
    assert [f"{name} has no effect" for name in names] == [
        what for what in lacks if "no effect" in what
    ]


def test_search_without_hnsw_finds_the_same_without_an_index(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    portal.add("A heron waits by the water.", title="Heron")

    def indexes(services: Services) -> list[str]:
        model = catalog.find(services, services.embedder.name)
        with services.database.begin() as session:
            return [index.method for index in standing_indexes(session, model.partition)]

    def found(services: Services) -> list[str]:
        client = create_app(services).test_client()
        answer = client.post(
            "/api/v1/search/semantic", json={"query_text": "heron"}, headers=portal.headers()
        )
        return [result["chunk_id"] for result in answer.json["data"]["results"]]

    without = make_services(search={"hnsw": {"enabled": False}})
    before = found(portal.services)
    assert indexes(portal.services) == ["hnsw"]
    reindex(without)
    assert indexes(without) == []
    assert found(without) == before
    assert health.check_vector_store(without)["vector_index"] == "off"
    reindex(portal.services)
    assert indexes(portal.services) == ["hnsw"]


# --- words ----------------------------------------------------------------------------------------


@pytest.fixture
def titles_by_words(
    make_services: Callable[..., Services], portal: Portal
) -> Callable[..., list[str]]:
    """Return a function giving the titles found by keywords, ranked by `ts_rank_cd`."""

    def titles(query: str, **words: Any) -> list[str]:
        services = make_services(search={"keyword_backend": "tsvector", "text": words})
        client = create_app(services).test_client()
        answer = client.post("/api/v1/search/text", json={"query": query}, headers=portal.headers())
        return [result["title"] for result in answer.json["data"]["results"]]

    return titles


def test_weights_say_how_much_a_word_of_the_title_counts(
    portal: Portal, titles_by_words: Callable[..., list[str]]
) -> None:
    portal.add("Grey birds stand in shallow water.", title="Heron")
    portal.add("The heron waits. Another heron flies.", name="b.txt", title="Birds")
    assert titles_by_words("heron") == ["Heron", "Birds"]
    assert titles_by_words("heron", weights=(1.0, 0.4, 0.2, 0.1)) == ["Birds", "Heron"]


def test_normalization_controls_the_penalty_of_long_chunks(
    portal: Portal, titles_by_words: Callable[..., list[str]]
) -> None:
    portal.add("A heron.", title="Short")
    portal.add("A heron and a heron. " + "Reeds grow here. " * 40, name="b.txt", title="Long")
    assert titles_by_words("heron") == ["Long", "Short"]
    # 2 divides the rank by the document's length.
    assert titles_by_words("heron", normalization=2) == ["Short", "Long"]


def test_language_says_how_words_are_stemmed_and_existing_documents_follow(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    portal.add("Viele Häuser stehen am Hang.", title="Berg")

    def found(query: str, **words: Any) -> list[str]:
        services = make_services(search={"text": words})
        for _ in reanalysis.reanalyse(services):
            pass
        client = create_app(services).test_client()
        answer = client.post("/api/v1/search/text", json={"query": query}, headers=portal.headers())
        return [result["title"] for result in answer.json["data"]["results"]]

    try:
        assert found("Haus") == []
        assert found("Haus", language="german") == ["Berg"]
        assert found("Haus", language="simple") == []
        assert found("Häuser", language="simple") == ["Berg"]
    finally:
        analyse_in("english")


def test_fuzzy_results_say_how_like_they_are_and_the_threshold_cuts_spellings(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    portal.add("Vacation rules for new employees.", title="Rules")

    def results(query: str, **words: Any) -> list[Any]:
        client = create_app(make_services(search={"text": words})).test_client()
        answer = client.post(
            "/api/v1/search/text", json={"query": query, "fuzzy": True}, headers=portal.headers()
        )
        return answer.json["data"]["results"]

    assert [result["similarity"] for result in results("vacation rules")] == [1.0]
    (respelt,) = results("vacaton")
    assert respelt["similarity"] == pytest.approx(7 / 8)
    assert results("vacaton", fuzzy_threshold=0.9) == []
    assert len(results("vacation", fuzzy_threshold=0.9)) == 1
    plain = (
        create_app(portal.services)
        .test_client()
        .post("/api/v1/search/text", json={"query": "vacation"}, headers=portal.headers())
    )
    assert plain.json["data"]["results"][0]["similarity"] is None


@for_each(
    ("given", "wrong"),
    [
        ({"top_n": "0", "rrf_k": "60"}, {"top_n"}),
        ({"top_n": "five"}, {"top_n"}),
        ({"rrf_k": "", "fusion": "magic"}, {"rrf_k", "fusion"}),
        ({"context_token_budget": "300"}, {"context_token_budget"}),
        ({"confidence_threshold": "nan"}, {"confidence_threshold"}),
        ({"semantic_weight": "0", "bm25_weight": "0"}, {"semantic_weight", "bm25_weight"}),
    ],
)
@for_each("language", ["en", "zh-CN"])
def test_wrong_settings_are_marked_and_nothing_is_saved(
    client: FlaskClient, portal: Portal, given: dict[str, str], wrong: set[str], language: str
) -> None:
    headers = portal.headers() | {"Accept-Language": language}
    answer = client.post("/admin/search", data={"domain_boost": "0.1", **given}, headers=headers)
    assert answer.status_code == 422
    page = answer.get_data(as_text=True)
    assert set(re.findall(r'data-field="(\w+)"', page)) == wrong
    assert dynamic_config.show(portal.services, portal.admin) == dynamic_config.DynamicConfig()
    for value in given.values():
        assert f'value="{value}"' in page or value == "magic"
    focused = re.findall(r'name="(\w+)"[^>]* aria-invalid="true"\s+autofocus>', page)
    marked = re.findall(r'name="(\w+)"[^>]* aria-invalid="true"', page)
    assert focused == marked[:1]
