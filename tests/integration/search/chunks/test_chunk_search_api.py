"""The chunk search API: scores that add up, filters, and no leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.documents.chunks import NewChunk
from portal.domain.people import User
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import chunks, library
from portal.text.terms.analyser import query_terms
from tests.conftest import Portal

TEXTS = (
    "Annual leave is fifteen days for all staff.",
    "Copper pipes carry water through the old house.",
    "Unused annual leave expires at the end of March.",
    "年假为每年十五天，未休年假于三月底作废。",
    "The violin stands in the corner of the house.",
    "Glaciers carry stones through old valleys.",
)
Ask = Callable[..., Any]


@pytest.fixture
def document(portal: Portal) -> DocumentSummary:
    """Return a document whose chunks are `TEXTS`, with metadata."""
    document = portal.add("An empty page, nearly.", name="base.txt", title="Base")
    new = [
        NewChunk(one, metadata={"page_number": place, "source_file": f"{place % 2}.pdf"})
        for place, one in enumerate(TEXTS)
    ]
    chunks.add_chunks(portal.services, portal.admin, document.job_id, new)
    return document


@pytest.fixture
def ask(client: FlaskClient, portal: Portal) -> Ask:
    def ask(kind: str, *, user: User | None = None, status: int = 200, **body: Any) -> Any:
        answer = client.post(f"/api/v1/search/{kind}", json=body, headers=portal.headers(user))
        assert answer.status_code == status, answer.get_data(as_text=True)
        assert set(answer.json) == {"success", "data", "error"}
        assert answer.json["success"] is (status == 200)
        return answer.json["data"] if status == 200 else answer.json["error"]

    return ask


def contents(data: Any) -> list[str]:
    return [result["chunk"]["content"] for result in data["results"]]


def cosines(services: Services, query: str, texts: Iterable[str]) -> list[float]:
    embedder = services.embedder
    return [float(x) for x in embedder.embed_chunks(list(texts)) @ embedder.embed_query(query)]


# --- semantic -------------------------------------------------------------------------------------


def test_semantic_search_orders_by_the_cosine_that_it_shows(
    portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    query = "How many days of annual leave?"
    data = ask("semantic", query_text=query, top_k=100)
    assert data["total"] == len(data["results"]) == len(TEXTS) + 1
    shown = [result["similarity"] for result in data["results"]]
    assert shown == sorted(shown, reverse=True)
    assert shown == pytest.approx(cosines(portal.services, query, contents(data)), abs=1e-5)
    first = data["results"][0]
    assert first["chunk_id"] == first["chunk"]["id"]
    assert first["document_id"] == first["chunk"]["document_id"] == str(document.id)
    assert (first["title"], data["degraded"]) == ("Base", [])


def test_own_vector_finds_what_the_text_finds(
    portal: Portal, document: DocumentSummary, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = portal.services.embedder.embed_query("annual leave")
    by_text = ask("semantic", query_text="annual leave")

    def fail(*_: object) -> None:
        raise EmbedderUnavailable(reason="it is out")

    monkeypatch.setattr(HashingEmbedder, "embed_query", fail)
    for scale in (1.0, 7.5, 1e-3):
        by_vector = ask("semantic", query_vector=(vector * scale).tolist())
        assert contents(by_vector) == contents(by_text)
        scores = [[one["similarity"] for one in data["results"]] for data in (by_vector, by_text)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_vector_of_other_dimensions_is_refused_by_both_numbers(portal: Portal, ask: Ask) -> None:
    portal.add("text")
    error = ask("semantic", query_vector=[0.5, 0.5, 0.5], status=422)
    assert error["code"] == "invalid_query_vector"
    assert "3 dimensions" in error["message"]
    assert str(portal.services.embedder.dimensions) in error["message"]
    zero = ask("semantic", query_vector=[0.0] * portal.services.embedder.dimensions, status=422)
    assert zero["code"] == "invalid_query_vector"


def test_threshold_bounds_the_cosine(document: DocumentSummary, ask: Ask) -> None:
    query = "Annual leave is fifteen days"
    everything = ask("semantic", query_text=query, top_k=100)["results"]
    for least in (0.05, 0.3, 0.6, 1.0):
        kept = ask("semantic", query_text=query, top_k=100, similarity_threshold=least)
        expected = [one for one in everything if one["similarity"] >= least]
        assert kept["results"] == expected
        assert kept["total"] == len(expected)


def test_same_words_twice_are_two_results(portal: Portal, ask: Ask) -> None:
    for name in ("a.txt", "b.txt"):
        portal.add(f"The very same zeppelin sentence, twice over. {name[0]}", name=name)
    for kind, name in (("semantic", "query_text"), ("text", "query"), ("hybrid", "query_text")):
        data = ask(kind, **{name: "the very same zeppelin sentence"})
        assert data["total"] == 2, kind


def test_batch_answers_each_query_as_it_is_answered_alone(
    portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    vector = portal.services.embedder.embed_query("violin").tolist()
    queries: list[dict[str, Any]] = [
        {"query_text": "annual leave", "top_k": 2},
        {"query_vector": vector, "top_k": 1},
        {"query_text": "water", "metadata_filter": {"page_number": {"$lt": 2}}},
    ]
    data = ask("batch", queries=queries)
    assert data["total"] == 3
    assert data["results"] == [ask("semantic", **query) for query in queries]
    wrong = ask("batch", queries=[*queries, {"query_vector": [1.0]}], status=422)
    assert wrong["code"] == "invalid_query_vector"
    ask("batch", queries=[], status=422)
    ask("batch", queries=queries * 7, status=422)


# --- text -----------------------------------------------------------------------------------------


def test_text_search_marks_words_and_escapes_all_else(portal: Portal, ask: Ask) -> None:
    portal.add("<b>Leave</b> & \"leaving\" <script>alert('leave')</script>", name="x.txt")
    (result,) = ask("text", query="leave")["results"]
    marked = result["highlighted_content"]
    assert marked.startswith("&lt;b&gt;<mark>Leave</mark>&lt;/b&gt; &amp; ")
    assert "<script>" not in marked
    plain = marked.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in plain
    assert ask("text", query="leave", highlight=False)["results"][0]["highlighted_content"] is None
    assert result["relevance_score"] == 1.0


@pytest.mark.parametrize("language", ["auto", "english", "chinese", "simple", "en", "zh"])
def test_language_restricts_nothing(document: DocumentSummary, ask: Ask, language: str) -> None:
    data = ask("text", query="annual leave 年假", language=language)
    assert TEXTS[3] in contents(data)
    assert TEXTS[0] in contents(data)
    for one in data["results"]:
        assert "<mark>" in one["highlighted_content"]


def test_fuzzy_search_finds_the_likely_spelling(document: DocumentSummary, ask: Ask) -> None:
    assert ask("text", query="glaciars")["results"] == []
    data = ask("text", query="glaciars", fuzzy=True)
    assert contents(data) == [TEXTS[5]]
    assert data["correction"]["is_applied"] is True
    assert "<mark>Glaciers</mark>" in data["results"][0]["highlighted_content"]
    ask("text", query="ab", fuzzy=True, status=422)
    assert TEXTS[3] in contents(ask("text", query="年假", fuzzy=True))


@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE document_chunks; --",
        "SELECT * FROM users -- delete",
        '-annual "leave" title:x type:pdf',
        "<script>alert(1)</script>",
        "%s :x $1 \\ {} ❤ \u202e",
        "a" * 4096,
    ],
)
def test_any_query_is_text_and_nothing_else(
    document: DocumentSummary, ask: Ask, query: str
) -> None:
    for kind, name in (("semantic", "query_text"), ("text", "query"), ("hybrid", "query_text")):
        ask(kind, **{name: query})
    assert TEXTS[0] in contents(ask("text", query='-annual "leave" title:x type:pdf'))


# --- hybrid ---------------------------------------------------------------------------------------


@pytest.mark.bm25
@pytest.mark.parametrize("weights", [(0.7, 0.3), (2.0, 6.0), (0.0, 1.0), (1.0, 0.0)])
def test_combined_score_is_the_weighted_mean_of_what_is_shown(
    document: DocumentSummary, ask: Ask, weights: tuple[float, float]
) -> None:
    vector, words = weights
    data = ask(
        "hybrid", query_text="annual leave", top_k=100, vector_weight=vector, text_weight=words
    )
    assert data["fusion_method"] == "weighted_sum"
    combined = [one["combined_score"] for one in data["results"]]
    assert combined == sorted(combined, reverse=True)
    for one in data["results"]:
        expected = vector * one["vector_score"] + words * one["text_score"]
        assert one["combined_score"] == pytest.approx(expected / (vector + words), abs=1e-12)
        assert (one["text_score"] > 0) == (one["text_rank"] is not None)


@pytest.mark.bm25
def test_shown_scores_and_ranks_are_those_of_the_legs(document: DocumentSummary, ask: Ask) -> None:
    query = "annual leave of the house"
    by_meaning = ask("semantic", query_text=query, top_k=100)["results"]
    by_words = ask("text", query=query, top_k=100)["results"]
    both = {one["chunk_id"]: one for one in ask("hybrid", query_text=query, top_k=100)["results"]}
    for rank, one in enumerate(by_meaning, 1):
        assert both[one["chunk_id"]]["vector_rank"] == rank
        assert both[one["chunk_id"]]["vector_score"] == pytest.approx(one["similarity"])
    for rank, one in enumerate(by_words, 1):
        assert both[one["chunk_id"]]["text_rank"] == rank
        assert both[one["chunk_id"]]["text_score"] == pytest.approx(one["relevance_score"])


@pytest.mark.bm25
@pytest.mark.parametrize("rrf_k", [1, 60, 1000])
def test_rrf_is_the_sum_over_the_shown_ranks(
    document: DocumentSummary, ask: Ask, rrf_k: int
) -> None:
    data = ask("hybrid", query_text="annual leave", fusion_method="rrf", rrf_k=rrf_k, top_k=100)
    assert data["fusion_method"] == "rrf"
    scores = [one["combined_score"] for one in data["results"]]
    assert scores == sorted(scores, reverse=True)
    for one in data["results"]:
        ranks = [one[name] for name in ("vector_rank", "text_rank") if one[name] is not None]
        assert one["combined_score"] == pytest.approx(sum(1 / (rrf_k + rank) for rank in ranks))


@pytest.mark.bm25
def test_threshold_keeps_what_the_words_found(document: DocumentSummary, ask: Ask) -> None:
    query = "annual leave"
    words = {one["chunk_id"] for one in ask("text", query=query, top_k=100)["results"]}
    data = ask("hybrid", query_text=query, top_k=100, similarity_threshold=0.99)
    assert {one["chunk_id"] for one in data["results"]} == words
    assert all(one["vector_rank"] is None for one in data["results"])
    assert data["fusion_method"] == "text_only"
    half = ask("hybrid", query_text=query, top_k=100, similarity_threshold=0.2)["results"]
    for one in half:
        assert (one["vector_rank"] is not None) == (one["vector_score"] >= 0.2)
        assert one["vector_rank"] or one["text_rank"]


def test_leg_that_falls_away_is_reported(
    portal: Portal, document: DocumentSummary, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask("hybrid", query_text="xylophone")["fusion_method"] == "vector_only"

    def fail(*_: object) -> None:
        raise EmbedderUnavailable(reason="it is out")

    monkeypatch.setattr(HashingEmbedder, "embed_query", fail)
    data = ask("hybrid", query_text="annual leave expires", vector_weight=0.5, text_weight=0.5)
    assert data["fusion_method"] == "text_only"
    assert data["degraded"] == ["embedder_unavailable"]
    for one in data["results"]:
        assert (one["vector_score"], one["vector_rank"]) == (0.0, None)
        assert one["combined_score"] == pytest.approx(one["text_score"] / 2)
    error = ask("semantic", query_text="another question", status=503)
    assert error["code"] == "embedder_unavailable"


# --- similar --------------------------------------------------------------------------------------


def similar(client: FlaskClient, headers: dict[str, str], chunk_id: object, query: str = "") -> Any:
    return client.get(f"/api/v1/search/similar/{chunk_id}{query}", headers=headers)


def test_similar_chunks_are_the_nearest_others(
    client: FlaskClient, portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    reference = ask("text", query="fifteen days staff")["results"][0]["chunk"]
    headers = portal.headers()
    data = similar(client, headers, reference["id"], "?top_k=100").json["data"]
    assert data["reference_chunk_id"] == reference["id"]
    assert data["total"] == len(TEXTS)
    assert reference["id"] not in {one["chunk_id"] for one in data["results"]}
    embedder = portal.services.embedder
    vectors = embedder.embed_chunks([reference["content"], *contents(data)])
    shown = [one["similarity"] for one in data["results"]]
    assert shown == pytest.approx([float(x) for x in vectors[1:] @ vectors[0]], abs=1e-5)
    assert shown == sorted(shown, reverse=True)
    few = similar(client, headers, reference["id"], "?top_k=2").json["data"]
    assert few["results"] == data["results"][:2]


def test_similar_chunks_of_other_jobs_alone(
    client: FlaskClient, portal: Portal, document: DocumentSummary
) -> None:
    for number in range(3):
        portal.add(f"Annual leave, page {number} of another file.", name=f"{number}.txt")
    own = chunks.list_chunks(portal.services, portal.admin, document.job_id, limit=1).items[0]
    data = similar(client, portal.headers(), own.id, "?top_k=3&exclude_same_job=true").json["data"]
    # Excluded before the limit: otherwise the nearest would fill it.
    assert data["total"] == 3
    assert {one["chunk"]["job_id"] for one in data["results"]}.isdisjoint({str(document.job_id)})


def test_similar_to_what_one_may_not_see_is_404(client: FlaskClient, portal: Portal) -> None:
    secret = portal.add("a secret", visibility=Visibility.PRIVATE, name="s.txt")
    (own,) = chunks.list_chunks(portal.services, portal.admin, secret.job_id, limit=1).items
    ben = portal.headers(portal.user("ben"))
    for chunk_id in (own.id, uuid4()):
        answer = similar(client, ben, chunk_id)
        assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
    assert similar(client, portal.headers(), own.id).status_code == 200
    library.delete_document(portal.services, portal.admin, secret.id)
    assert similar(client, portal.headers(), own.id).status_code == 404


@pytest.mark.bm25
def test_chunk_without_a_vector_is_reported(
    client: FlaskClient, portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    with portal.services.database.begin() as session:
        session.execute(text("DELETE FROM chunk_embeddings"))
    (found,) = ask("text", query="violin")["results"]
    assert found["chunk"]["has_embedding"] is False
    answer = similar(client, portal.headers(), found["chunk_id"])
    assert (answer.status_code, answer.json["error"]["code"]) == (409, "no_embedding")
    hybrid = ask("hybrid", query_text="violin")
    assert hybrid["fusion_method"] == "text_only"
    assert hybrid["results"][0]["vector_score"] == 0.0


# --- filters, and what may be found ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ({"page_number": {"$gte": 3}}, {3, 4, 5}),
        ({"page_number": {"$gte": 1, "$lt": 4}, "source_file": "1.pdf"}, {1, 3}),
        ({"page_number": {"$in": [0, 5, "4"]}}, {0, 5}),
        ({"page_number": "3"}, set()),
        ({"$or": [{"page_number": 0}, {"page_number": {"$gt": 4}}]}, {0, 5}),
        ([{"field": "page_number", "operator": "lte", "value": 1}], {0, 1}),
        ({"source_file": {"$ne": "0.pdf"}, "page_number": {"$lt": 10}}, {1, 3, 5}),
    ],
)
def test_filter_keeps_what_fulfils_it(
    document: DocumentSummary, ask: Ask, wanted: Any, places: set[int]
) -> None:
    query = "annual leave house old 年假"
    for kind, name in (("semantic", "query_text"), ("hybrid", "query_text"), ("text", "query")):
        data = ask(kind, **{name: query}, metadata_filter=wanted, top_k=100)
        assert set(contents(data)) == {TEXTS[place] for place in places}, kind


@pytest.mark.parametrize("wanted", ["a = 1", 7, {"a": {"$regex": "."}}, [{"field": "a"}]])
def test_filter_that_is_none_is_422_in_words(
    document: DocumentSummary, ask: Ask, wanted: Any
) -> None:
    error = ask("semantic", query_text="x", metadata_filter=wanted, status=422)
    assert "metadata filter" in error["message"]


def test_filter_of_a_job_keeps_its_chunks_alone(
    portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    other = portal.add("Annual leave elsewhere.", name="other.txt")
    for kind, name in (("semantic", "query_text"), ("hybrid", "query_text"), ("text", "query")):
        data = ask(kind, **{name: "annual leave"}, job_id=str(other.job_id), top_k=100)
        assert contents(data) == ["Annual leave elsewhere."], kind
        assert ask(kind, **{name: "annual leave"}, job_id=str(uuid4()))["results"] == []


def test_selection_of_a_foreign_conversation_is_404(portal: Portal, ask: Ask) -> None:
    talk = conversations.create(portal.services, portal.admin)
    ben = portal.user("ben")
    for kind, name in (("semantic", "query_text"), ("text", "query"), ("hybrid", "query_text")):
        error = ask(kind, **{name: "x"}, conversation_id=str(talk.id), user=ben, status=404)
        assert error["code"] == "not_found"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("semantic", {}),
        ("semantic", {"query_text": ""}),
        ("semantic", {"query_text": " \u200b"}),
        ("semantic", {"query_text": "x" * 4097}),
        ("semantic", {"query_text": "x", "query_vector": [1.0]}),
        ("semantic", {"query_text": "x", "top_k": 0}),
        ("semantic", {"query_text": "x", "top_k": 101}),
        ("semantic", {"query_text": "x", "similarity_threshold": 1.1}),
        ("semantic", {"query_text": "x", "job_id": "7"}),
        ("semantic", {"query_text": "x", "unknown": 1}),
        ("semantic", {"query_vector": []}),
        ("semantic", {"query_vector": ["a"]}),
        ("semantic", {"query_vector": [float("nan")]}),
        ("text", {"query_text": "x"}),
        ("text", {"query": "x", "language": "klingon"}),
        ("hybrid", {"query_text": "x", "vector_weight": 0, "text_weight": 0}),
        ("hybrid", {"query_text": "x", "vector_weight": -1}),
        ("hybrid", {"query_text": "x", "fusion_method": "text_only"}),
        ("hybrid", {"query_text": "x", "rrf_k": 0}),
        ("batch", {"queries": [{"query_text": ""}]}),
    ],
)
def test_wishes_that_make_no_sense_are_422(ask: Ask, kind: str, body: dict[str, Any]) -> None:
    assert ask(kind, **body, status=422)["code"] == "invalid"


def test_every_error_stands_in_the_envelope(client: FlaskClient, portal: Portal) -> None:
    headers, path = portal.headers(), "/api/v1/search/text"
    answers = {
        401: client.post(path, json={"query": "x"}),
        400: client.post(path, data="{", content_type="application/json", headers=headers),
        404: client.get("/api/v1/nothing", headers=headers),
        405: client.get(path, headers=headers),
        422: client.post(path, json=[], headers=headers),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.json["success"] is False
        assert answer.json["data"] is None
        assert answer.json["error"]["message"]


def test_without_a_vector_store_words_and_lists_stay(
    make_services: Callable[..., Services], portal: Portal, document: DocumentSummary
) -> None:
    client = create_app(make_services(vector_store_enabled=False)).test_client()
    headers = portal.headers()
    chunk = chunks.list_chunks(portal.services, portal.admin, document.job_id, limit=1).items[0]
    for answer in (
        client.post("/api/v1/search/semantic", json={"query_text": "x"}, headers=headers),
        client.post("/api/v1/search/hybrid", json={"query_text": "x"}, headers=headers),
        client.post(
            "/api/v1/search/batch", json={"queries": [{"query_text": "x"}]}, headers=headers
        ),
        similar(client, headers, chunk.id),
    ):
        assert (answer.status_code, answer.json["error"]["code"]) == (503, "vector_store_disabled")
    words = client.post("/api/v1/search/text", json={"query": "violin"}, headers=headers)
    assert words.json["data"]["total"] == 1
    listed = client.get(f"/api/v1/jobs/{document.job_id}/chunks", headers=headers)
    assert listed.json["data"]["pagination"]["total"] == len(TEXTS) + 1


def test_limits_are_those_of_the_seed(make_services: Callable[..., Services]) -> None:
    limits = make_services(rate_limits={"enabled": True}).settings.rate_limits
    assert (limits.search_semantic, limits.search_text, limits.search_hybrid) == (
        "30 per minute", "60 per minute", "20 per minute"
    )  # fmt: skip
    assert (limits.list_chunks, limits.get_chunk, limits.search_similar) == (
        "100 per minute", "200 per minute", "40 per minute"
    )  # fmt: skip


def test_hybrid_search_is_limited_a_user(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    client = create_app(make_services(rate_limits={"enabled": True})).test_client()
    ann = portal.headers(portal.user("ann"))
    body = {"query_text": ""}  # Refused, but counted by the limit.
    statuses = [
        client.post("/api/v1/search/hybrid", json=body, headers=ann).status_code for _ in range(21)
    ]
    assert statuses == [422] * 20 + [429]
    late = client.post("/api/v1/search/hybrid", json=body, headers=ann)
    assert late.json["success"] is False
    assert int(late.headers["Retry-After"]) >= 1
    other = client.post("/api/v1/search/hybrid", json=body, headers=portal.headers())
    assert other.status_code == 422


def test_highlighted_words_are_those_of_the_query(document: DocumentSummary, ask: Ask) -> None:
    for one in ask("text", query="annual leave", top_k=100)["results"]:
        marked = one["highlighted_content"].split("<mark>")[1:]
        words = [part.split("</mark>")[0] for part in marked]
        assert words
        assert all(set(query_terms(word)) <= {"annual", "leav", "annu"} for word in words)


def test_vectors_of_the_batch_are_not_mixed_up(portal: Portal, ask: Ask) -> None:
    for word in ("copper", "violin"):
        portal.add(f"{word} and nothing else", name=f"{word}.txt")
    vectors = [portal.services.embedder.embed_query(word) for word in ("copper", "violin")]
    assert not np.allclose(*vectors)
    data = ask("batch", queries=[{"query_vector": v.tolist(), "top_k": 1} for v in vectors])
    firsts = [contents(one)[0].split()[0] for one in data["results"]]
    assert firsts == ["copper", "violin"]
