"""Filters, limits and refusals of chunk search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import DocumentSummary
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import chunks
from portal.text.terms.analyser import query_terms
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.search.chunks.chunk_search_api.conftest import TEXTS, Ask, contents, similar


@for_each(
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


@for_each("wanted", ["a = 1", 7, {"a": {"$regex": "."}}, [{"field": "a"}]])
def test_invalid_filter_is_422_with_a_message(
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


@for_each(
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


def test_every_error_is_in_the_envelope(client: FlaskClient, portal: Portal) -> None:
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
    (chunk,), _ = chunks.list_chunks(portal.services, portal.admin, document.job_id, limit=1)
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


def test_highlighted_words_are_those_of_the_query(document: DocumentSummary, ask: Ask) -> None:
    for result in ask("text", query="annual leave", top_k=100)["results"]:
        marked = result["highlighted_content"].split("<mark>")[1:]
        words = [part.split("</mark>")[0] for part in marked]
        assert words
        assert all(set(query_terms(word)) <= {"annual", "leav", "annu"} for word in words)


def test_vectors_of_the_batch_are_not_mixed_up(portal: Portal, ask: Ask) -> None:
    for word in ("copper", "violin"):
        portal.add(f"{word} and nothing else", name=f"{word}.txt")
    vectors = [portal.services.embedder.embed_query(word) for word in ("copper", "violin")]
    assert not np.allclose(*vectors)
    data = ask("batch", queries=[{"query_vector": v.tolist(), "top_k": 1} for v in vectors])
    firsts = [contents(result)[0].split()[0] for result in data["results"]]
    assert firsts == ["copper", "violin"]
