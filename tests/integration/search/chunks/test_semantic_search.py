"""`semantic_search` over the portal's documents and over HTTP, criterion by criterion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from bench import databases
from portal import create_app
from portal.container import build_services
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.documents.chunks import NewChunk
from portal.domain.search.bm25 import ALL_CHUNKS
from portal.services import Services
from portal.services.documents import chunks, library, switches
from portal.services.operations import setup
from portal.services.search.programs import portal_semantic
from portal.settings import load_settings
from portal.store.search.selection.row_cache import RowCache
from tests.conftest import Portal, make_settings
from tests.factories.semantic import captured_log, named
from tests.factories.servers.endpoint import fake_endpoint
from tests.factories.uploads import needs_bm25

PATH = "/api/semantic_search"
QUESTION = "annual leave of employees"
DOCUMENTS = {
    "leave.txt": "Employees take fifteen days of annual leave.",
    "handbook.md": "# Employees\n\nEmployees get a handbook, a badge and a key of the office.",
    "annual.txt": "The annual report of the annual meeting.",
    "office.txt": "The office closes at six.",
    "codes.txt": "The code PO-4711 stands for leave without pay.",
    "年假.txt": "员工每年有十五天带薪年假。",
}
DIMENSIONS = 64

pytestmark = needs_bm25


@pytest.fixture
def make_portal(make_services: Callable[..., Services]) -> Callable[..., Portal]:
    def make(**settings: Any) -> Portal:
        services = make_services(**settings)
        portal = Portal.of(services)
        for name, words in DOCUMENTS.items():
            portal.add(words, name=name)
        return portal

    return make


@pytest.fixture
def hybrid(make_portal: Callable[..., Portal]) -> Portal:
    return make_portal(use_hybrid_search="true")


@pytest.fixture
def dense(make_portal: Callable[..., Portal]) -> Portal:
    return make_portal()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    return captured_log(monkeypatch)


def client_of(portal: Portal) -> FlaskClient:
    return create_app(portal.services).test_client()


def ask(portal: Portal, query: str = QUESTION, **body: Any) -> Any:
    headers = portal.headers(body.pop("user", None))
    answer = client_of(portal).post(PATH, headers=headers, json={"query": query} | body)
    assert answer.status_code == 200, answer.json
    return answer.json


def titles(found: Any) -> list[str]:
    return [result["metadata"]["title"] for result in found["results"]]


def status(portal: Portal) -> Any:
    return client_of(portal).get(f"{PATH}/status", headers=portal.headers()).json


# --- requirement 1: an index of words beside the vectors ----------------------------------------


def test_1_1_and_1_2_collection_has_a_bm25_index_of_its_chunks(hybrid: Portal) -> None:
    with hybrid.services.database.engine.connect() as connection:
        definition = connection.scalar(
            text("SELECT indexdef FROM pg_indexes WHERE indexname = :name"),
            {"name": ALL_CHUNKS.name},
        )
    assert "USING bm25 (terms)" in str(definition)


def test_1_3_added_document_is_in_both_indexes_at_once(hybrid: Portal) -> None:
    hybrid.add("Zebras sleep standing.", name="zebra.txt")
    (found, *_) = ask(hybrid, "sleeping zebras")["results"]
    assert found["metadata"]["title"] == "zebra"
    assert (found["metadata"]["dense_rank"], found["metadata"]["sparse_rank"]) == (1, 1)


def test_1_4_start_makes_the_index_where_there_is_none(hybrid: Portal) -> None:
    hybrid.execute(f"DROP INDEX {ALL_CHUNKS.name}")
    assert status(hybrid)["is_enabled"] is False
    list(setup.prepare_database(hybrid.services))
    assert status(hybrid)["is_enabled"] is True
    assert ask(hybrid)["method"] == "hybrid"


def test_1_5_index_that_is_not_there_is_logged_and_meaning_alone_is_searched(
    hybrid: Portal, log: list[dict[str, Any]]
) -> None:
    hybrid.execute(f"DROP INDEX {ALL_CHUNKS.name}")
    found = ask(hybrid)
    assert (found["method"], found["hybrid_enabled"]) == ("dense", False)
    assert titles(found)[0] == "leave"
    told = named(log, "configured")[-1]
    assert (told["hybrid_enabled"], told["reason"]) == (False, "keyword_unavailable")


# --- requirement 2: the switch ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("true", True), ("1", True), ("yes", True), ("TRUE", True), (" Yes ", True),
     ("false", False), ("0", False), ("on", False), ("maybe", False), ("", False), (None, False)],
)  # fmt: skip
def test_2_1_and_2_4_environment_turns_it_on_by_three_words_and_off_by_all_others(
    monkeypatch: pytest.MonkeyPatch, value: str | None, is_on: bool
) -> None:
    if value is None:
        monkeypatch.delenv("USE_HYBRID_SEARCH", raising=False)
    else:
        monkeypatch.setenv("USE_HYBRID_SEARCH", value)
    assert load_settings().hybrid_semantic_search is is_on


def test_2_2_switched_off_only_meaning_is_searched(dense: Portal) -> None:
    found = ask(dense)
    assert (found["method"], found["hybrid_enabled"]) == ("dense", False)
    similarities = [result["similarity"] for result in found["results"]]
    assert similarities == sorted(similarities, reverse=True)
    assert all("rrf_score" not in result["metadata"] for result in found["results"])


def test_2_3_switched_on_both_are_searched(hybrid: Portal) -> None:
    found = ask(hybrid)
    assert (found["method"], found["hybrid_enabled"]) == ("hybrid", True)
    first = found["results"][0]["metadata"]
    assert first["dense_rank"] is not None
    assert first["sparse_rank"] is not None


def test_2_5_status_reports_the_configuration(hybrid: Portal) -> None:
    expected = {"backend": "postgresql", "is_requested": True, "is_enabled": True, "reason": None}
    assert status(hybrid) == expected
    assert portal_semantic.status(hybrid.services).is_enabled


# --- requirements 3 to 5: legs, fusion, results -------------------------------------------------


def test_3_and_4_ranks_and_scores_are_those_of_the_two_legs(
    hybrid: Portal, make_services: Callable[..., Services]
) -> None:
    plain = ask(Portal(make_services(), hybrid.admin), limit=10)
    by_words = client_of(hybrid).post(
        "/api/knowledge/search",
        headers=hybrid.headers(),
        json={"query": QUESTION, "mode": "keyword", "top_n": 10},
    )  # fmt: skip
    dense_ranks = {one["id"]: rank for rank, one in enumerate(plain["results"], 1)}
    sparse_ranks = {one["chunk_id"]: rank for rank, one in enumerate(by_words.json["results"], 1)}
    found = ask(hybrid, limit=5)["results"]
    assert len(found) == 5
    for one in found:
        metadata, ranks = one["metadata"], (dense_ranks.get(one["id"]), sparse_ranks.get(one["id"]))
        assert (metadata["dense_rank"], metadata["sparse_rank"]) == ranks
        score = sum(1 / (60 + rank) for rank in ranks if rank is not None)
        assert metadata["rrf_score"] == pytest.approx(score)
    scores = [one["metadata"]["rrf_score"] for one in found]
    assert scores == sorted(scores, reverse=True)


def test_3_5_vectors_that_are_gone_leave_words(
    hybrid: Portal, log: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(hybrid)  # Start the portal before the vectors go.
    monkeypatch.setattr(f"{__name__}.client_of", lambda _portal: client)
    before = ask(hybrid)
    hybrid.services.enabled_sets.vectors = RowCache(0)  # They would still be in memory.
    hybrid.execute("DROP TABLE chunk_embeddings_m1")
    found = ask(hybrid, f"{QUESTION} please")
    assert (found["method"], found["degraded"]) == ("sparse", ["vector_unavailable"])
    assert titles(found)[0] == titles(before)[0] == "leave"
    failed = [entry["leg"] for entry in named(log, "leg_failed")]
    assert failed == ["dense"]


def test_3_5_words_that_cannot_be_searched_leave_meaning(
    make_portal: Callable[..., Portal], log: list[dict[str, Any]]
) -> None:
    portal = make_portal(use_hybrid_search="1", search={"keyword_backend": "tsvector"})
    assert ask(portal)["method"] == "hybrid"
    portal.execute("ALTER TABLE document_chunks RENAME COLUMN terms_vector TO gone")
    found = ask(portal, f"{QUESTION} please")
    assert (found["method"], found["degraded"]) == ("dense", ["keyword_unavailable"])
    assert titles(found)[0] == "leave"
    assert [entry["leg"] for entry in named(log, "leg_failed")] == ["sparse"]


def test_5_2_and_5_3_limit_and_threshold(hybrid: Portal) -> None:
    everything = ask(hybrid, limit=50)["results"]
    assert ask(hybrid, limit=2)["results"] == everything[:2]
    threshold = sorted(one["similarity"] for one in everything)[-2]
    kept = ask(hybrid, limit=50, threshold=threshold)["results"]
    assert kept == [one for one in everything if one["similarity"] >= threshold]
    assert 0 < len(kept) < len(everything)


def test_5_5_nothing_near_enough_is_an_empty_list(hybrid: Portal, dense: Portal) -> None:
    assert ask(hybrid, threshold=1.0)["results"] == []
    assert ask(dense, threshold=1.0)["results"] == []


# --- requirement 6: callers ---------------------------------------------------------------------


def test_6_2_parameters_are_the_same_in_body_and_address(hybrid: Portal) -> None:
    asked = {"limit": 3, "threshold": 0.05, "content_type": "text/plain"}
    by_address = client_of(hybrid).get(
        PATH, query_string={"query": QUESTION} | asked, headers=hybrid.headers()
    )
    assert by_address.json == ask(hybrid, **asked)
    assert by_address.json["count"] == 3


def test_6_3_results_have_the_same_fields_with_and_without_hybrid(
    hybrid: Portal, make_services: Callable[..., Services]
) -> None:
    dense = {
        result["id"]: result for result in ask(Portal(make_services(), hybrid.admin))["results"]
    }
    for result in ask(hybrid)["results"]:
        plain = dense.get(result["id"])
        if plain is None:
            continue
        assert set(result) == set(plain)
        assert result["content"] == plain["content"]
        assert set(result["metadata"]) - set(plain["metadata"]) == {
            "rrf_score", "dense_rank", "sparse_rank",
        }  # fmt: skip


@pytest.mark.parametrize("switch", ["yes", "no"])
def test_6_4_content_type_narrows_both_legs(
    make_portal: Callable[..., Portal], switch: str
) -> None:
    portal = make_portal(use_hybrid_search=switch)
    document = library.get_summary(portal.services, portal.admin, of(portal, "office").id)
    assert document.job_id is not None
    chunks.add_chunks(
        portal.services,
        portal.admin,
        document.job_id,
        [NewChunk("Annual leave of employees as a card.", metadata={"content_type": "card"})],
    )
    markdown = ask(portal, content_type="text/markdown", limit=20)
    assert set(titles(markdown)) == {"handbook"}
    cards = ask(portal, content_type="card", limit=20)["results"]
    assert [card["content"] for card in cards] == ["Annual leave of employees as a card."]
    assert cards[0]["metadata"]["content_type"] == "card"
    # Metadata given by a program takes precedence over the file's own.
    plain = ask(portal, content_type="text/plain", limit=20)["results"]
    assert cards[0]["id"] not in {one["id"] for one in plain}
    assert ask(portal, content_type="video/mp4")["results"] == []


@pytest.mark.parametrize("switch", ["yes", "no"])
def test_metadata_of_a_program_does_not_replace_the_portals(
    make_portal: Callable[..., Portal], switch: str
) -> None:
    portal = make_portal(use_hybrid_search=switch)
    job_id = of(portal, "office").job_id
    assert job_id is not None
    spoof = {"title": "SPOOF", "page": 5, "heading": "H", "chunk_index": -7, "similarity": 3}
    ranks = {"rrf_score": 3, "dense_rank": -1, "sparse_rank": -1}
    added = NewChunk("Leave of a zebra.", metadata=spoof | ranks | {"colour": "red"})
    chunks.add_chunks(portal.services, portal.admin, job_id, [added])
    found = ask(portal, "Leave of a zebra.")["results"][0]
    assert found["content"] == "Leave of a zebra."
    metadata = found["metadata"]
    assert (metadata["title"], metadata["chunk_index"], metadata["colour"]) == ("office", 1, "red")
    assert (metadata["page"], metadata["heading"]) == (None, None)
    assert metadata["similarity"] == found["similarity"]
    if switch == "yes":
        assert 0 < metadata["rrf_score"] < 1
    else:
        assert not ranks.keys() & metadata.keys()


def of(portal: Portal, title: str) -> DocumentSummary:
    page = library.list_documents(portal.services, portal.admin)
    (found,) = (item for item in page.items if item.title == title)
    return found


def test_6_5_no_index_of_words_is_no_error(
    make_portal: Callable[..., Portal], log: list[dict[str, Any]]
) -> None:
    portal = make_portal(use_hybrid_search="true", search={"keyword_backend": "off"})
    assert ask(portal)["method"] == "dense"
    assert named(log, "leg_failed") == []


def test_both_legs_find_only_documents_enabled_for_the_user(hybrid: Portal) -> None:
    owner, other = hybrid.user("owner"), hybrid.user("other")
    hybrid.add(QUESTION, name="private.txt", owner=owner, visibility=Visibility.PRIVATE)
    switches.set_switch(hybrid.services, other, None, of(hybrid, "leave").id, enabled=False)
    library.delete_document(hybrid.services, hybrid.admin, of(hybrid, "annual").id)
    theirs = ask(hybrid, limit=50, user=other)
    assert not {"private", "leave", "annual"} & set(titles(theirs))
    assert titles(ask(hybrid, user=owner))[0] == "private"


# --- requirement 7: what is logged --------------------------------------------------------------


def test_7_1_start_of_a_process_logs_the_configuration(
    hybrid: Portal, log: list[dict[str, Any]]
) -> None:
    create_app(hybrid.services)
    (told,) = named(log, "configured")
    assert (told["backend"], told["hybrid_requested"], told["hybrid_enabled"]) == (
        "postgresql", True, True,
    )  # fmt: skip
    ask(hybrid)
    assert len(named(log, "configured")) == 1


def test_7_2_to_7_5_search_logs_its_counts_and_never_the_question(
    hybrid: Portal, log: list[dict[str, Any]]
) -> None:
    found = ask(hybrid, limit=2)
    (counts,), (merged,) = named(log, "legs"), named(log, "merged")
    assert merged["merged"] == counts["dense"] + counts["sparse"]
    assert merged["unique"] == merged["merged"] - merged["in_both"]
    (finished,) = named(log, "finished")
    assert (finished["results"], finished["method"]) == (found["count"], "hybrid")
    assert "annual" not in str(log)


# --- requirement 8: edges -----------------------------------------------------------------------


def test_8_1_empty_question_finds_nothing(hybrid: Portal) -> None:
    for query in ("", "   ", "\n\t"):
        found = ask(hybrid, query)
        assert (found["results"], found["count"]) == ([], 0)


def test_8_2_empty_database_is_given_its_schema_before_the_first_search(
    server_url: str, tmp_path: Path
) -> None:
    with databases.temporary(server_url, f"test_{uuid4().hex}") as url:
        services = build_services(make_settings(tmp_path, url, use_hybrid_search="true"))
        list(setup.prepare_database(services))
        portal = Portal.of(services)
        assert ask(portal)["results"] == []
        portal.add(DOCUMENTS["leave.txt"], name="leave.txt")
        assert (titles(ask(portal)), ask(portal)["method"]) == (["leave"], "hybrid")
        services.database.dispose()


def test_8_3_server_without_bm25_is_noticed_and_hybrid_is_off(hybrid: Portal) -> None:
    hybrid.execute("DROP EXTENSION IF EXISTS pg_textsearch CASCADE")
    assert status(hybrid) == {
        "backend": "postgresql", "is_requested": True, "is_enabled": False,
        "reason": "keyword_unavailable",
    }  # fmt: skip
    assert titles(ask(hybrid))[0] == "leave"


def test_8_4_limit_less_than_1_counts_as_5(hybrid: Portal) -> None:
    assert ask(hybrid, limit=0) == ask(hybrid, limit=-7) == ask(hybrid, limit=5) == ask(hybrid)


def test_8_5_embedding_fails_and_words_are_searched(make_portal: Callable[..., Portal]) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        embedding = {
            "provider": "openai", "model": "some-model", "api_base": endpoint.url,
            "dimensions": DIMENSIONS,
        }  # fmt: skip
        portal = make_portal(use_hybrid_search="true", embedding=embedding)
        assert ask(portal)["method"] == "hybrid"
    found = ask(portal, f"{QUESTION} please", threshold=0.9)
    assert found["method"] == "sparse"
    assert found["degraded"] == ["embedder_unavailable", "threshold_not_applied"]
    assert titles(found)[0] == "leave"
    assert found["results"][0]["similarity"] is None


def test_without_hybrid_an_embedding_that_fails_is_reported(
    make_portal: Callable[..., Portal],
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        embedding = {
            "provider": "openai", "model": "some-model", "api_base": endpoint.url,
            "dimensions": DIMENSIONS,
        }  # fmt: skip
        portal = make_portal(embedding=embedding)
    answer = client_of(portal).post(PATH, headers=portal.headers(), json={"query": "new words"})
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "embedder_unavailable")


def test_wrong_values_are_refused(hybrid: Portal) -> None:
    client, headers = client_of(hybrid), hybrid.headers()
    for body in (
        {}, {"query": "x" * 4097}, {"query": "x", "limit": 101}, {"query": "x", "limit": "many"},
        {"query": "x", "threshold": 2}, {"query": "x", "threshold": float("nan")},
        {"query": "x", "content_type": 7}, {"query": "x", "k": 3},
    ):  # fmt: skip
        answer = client.post(PATH, headers=headers, json=body)
        assert (answer.status_code, answer.json["error"]["code"]) == (422, "invalid"), body


def test_vector_store_switched_off_is_reported(
    hybrid: Portal, make_services: Callable[..., Services]
) -> None:
    portal = Portal(make_services(vector_store_enabled=False), hybrid.admin)
    answer = client_of(portal).post(PATH, headers=portal.headers(), json={"query": "x"})
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "vector_store_disabled")
