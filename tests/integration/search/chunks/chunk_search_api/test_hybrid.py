"""Hybrid search of chunks, and similar chunks."""

from __future__ import annotations

from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary, Visibility
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.services.documents import chunks, library
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.search.chunks.chunk_search_api.conftest import TEXTS, Ask, contents, similar


@pytest.mark.bm25
@for_each("weights", [(0.7, 0.3), (2.0, 6.0), (0.0, 1.0), (1.0, 0.0)])
def test_combined_score_is_the_weighted_mean_of_what_is_shown(
    document: DocumentSummary, ask: Ask, weights: tuple[float, float]
) -> None:
    vector, words = weights
    data = ask(
        "hybrid", query_text="annual leave", top_k=100, vector_weight=vector, text_weight=words
    )
    assert data["fusion_method"] == "weighted_sum"
    combined = [result["combined_score"] for result in data["results"]]
    assert combined == sorted(combined, reverse=True)
    for result in data["results"]:
        expected = vector * result["vector_score"] + words * result["text_score"]
        assert result["combined_score"] == pytest.approx(expected / (vector + words), abs=1e-12)
        assert (result["text_score"] > 0) == (result["text_rank"] is not None)


@pytest.mark.bm25
def test_shown_scores_and_ranks_are_those_of_the_legs(document: DocumentSummary, ask: Ask) -> None:
    query = "annual leave of the house"
    by_meaning = ask("semantic", query_text=query, top_k=100)["results"]
    by_words = ask("text", query=query, top_k=100)["results"]
    both = {
        result["chunk_id"]: result
        for result in ask("hybrid", query_text=query, top_k=100)["results"]
    }
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
    scores = [result["combined_score"] for result in data["results"]]
    assert scores == sorted(scores, reverse=True)
    for result in data["results"]:
        ranks = [result[name] for name in ("vector_rank", "text_rank") if result[name] is not None]
        assert result["combined_score"] == pytest.approx(sum(1 / (rrf_k + rank) for rank in ranks))


@pytest.mark.bm25
def test_threshold_keeps_what_the_words_found(document: DocumentSummary, ask: Ask) -> None:
    query = "annual leave"
    words = {result["chunk_id"] for result in ask("text", query=query, top_k=100)["results"]}
    data = ask("hybrid", query_text=query, top_k=100, similarity_threshold=0.99)
    assert {result["chunk_id"] for result in data["results"]} == words
    assert all(result["vector_rank"] is None for result in data["results"])
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
    for result in data["results"]:
        assert (result["vector_score"], result["vector_rank"]) == (0.0, None)
        assert result["combined_score"] == pytest.approx(result["text_score"] / 2)
    error = ask("semantic", query_text="another question", status=503)
    assert error["code"] == "embedder_unavailable"


def test_similar_chunks_are_the_nearest_others(
    client: FlaskClient, portal: Portal, document: DocumentSummary, ask: Ask
) -> None:
    reference = ask("text", query="fifteen days staff")["results"][0]["chunk"]
    headers = portal.headers()
    data = similar(client, headers, reference["id"], "?top_k=100").json["data"]
    assert data["reference_chunk_id"] == reference["id"]
    assert data["total"] == len(TEXTS)
    assert reference["id"] not in {result["chunk_id"] for result in data["results"]}
    embedder = portal.services.embedder
    vectors = embedder.embed_chunks([reference["content"], *contents(data)])
    shown = [result["similarity"] for result in data["results"]]
    assert shown == pytest.approx([float(x) for x in vectors[1:] @ vectors[0]], abs=1e-5)
    assert shown == sorted(shown, reverse=True)
    few = similar(client, headers, reference["id"], "?top_k=2").json["data"]
    assert few["results"] == data["results"][:2]


def test_similar_chunks_of_other_jobs_alone(
    client: FlaskClient, portal: Portal, document: DocumentSummary
) -> None:
    for number in range(3):
        portal.add(f"Annual leave, page {number} of another file.", name=f"{number}.txt")
    (own,), _ = chunks.list_chunks(portal.services, portal.admin, document.job_id, limit=1)
    data = similar(client, portal.headers(), own.id, "?top_k=3&exclude_same_job=true").json["data"]
    # Excluded before the limit: otherwise the nearest would fill it.
    assert data["total"] == 3
    assert {result["chunk"]["job_id"] for result in data["results"]}.isdisjoint(
        {str(document.job_id)}
    )


def test_similar_to_an_invisible_chunk_is_404(client: FlaskClient, portal: Portal) -> None:
    secret = portal.add("a secret", visibility=Visibility.PRIVATE, name="s.txt")
    (own,), _ = chunks.list_chunks(portal.services, portal.admin, secret.job_id, limit=1)
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
    portal.execute("DELETE FROM chunk_embeddings")
    (found,) = ask("text", query="violin")["results"]
    assert found["chunk"]["has_embedding"] is False
    answer = similar(client, portal.headers(), found["chunk_id"])
    assert (answer.status_code, answer.json["error"]["code"]) == (409, "no_embedding")
    hybrid = ask("hybrid", query_text="violin")
    assert hybrid["fusion_method"] == "text_only"
    assert hybrid["results"][0]["vector_score"] == 0.0
