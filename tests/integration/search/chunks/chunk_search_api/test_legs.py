"""Semantic and text search of chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from portal.domain.documents import DocumentSummary
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.services import Services
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.search.chunks.chunk_search_api.conftest import TEXTS, Ask, contents


def cosines(services: Services, query: str, texts: Iterable[str]) -> list[float]:
    embedder = services.embedder
    return [float(x) for x in embedder.embed_chunks(list(texts)) @ embedder.embed_query(query)]


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
        scores = [
            [result["similarity"] for result in data["results"]] for data in (by_vector, by_text)
        ]
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


def test_same_text_twice_gives_two_results(portal: Portal, ask: Ask) -> None:
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


@for_each("language", ["auto", "english", "chinese", "simple", "en", "zh"])
def test_language_restricts_nothing(document: DocumentSummary, ask: Ask, language: str) -> None:
    data = ask("text", query="annual leave 年假", language=language)
    assert TEXTS[3] in contents(data)
    assert TEXTS[0] in contents(data)
    for result in data["results"]:
        assert "<mark>" in result["highlighted_content"]


def test_fuzzy_search_finds_the_likely_spelling(document: DocumentSummary, ask: Ask) -> None:
    assert ask("text", query="glaciars")["results"] == []
    data = ask("text", query="glaciars", fuzzy=True)
    assert contents(data) == [TEXTS[5]]
    assert data["correction"]["is_applied"] is True
    assert "<mark>Glaciers</mark>" in data["results"][0]["highlighted_content"]
    ask("text", query="ab", fuzzy=True, status=422)
    assert TEXTS[3] in contents(ask("text", query="年假", fuzzy=True))


@for_each(
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
