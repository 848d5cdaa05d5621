"""The /v1 API: documents as stored, and search scores that add up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.people import User
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.services import Services
from portal.services.documents import library, switches
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake import uploads
from portal.text.terms.analyser import query_terms
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.servers.endpoint import fake_endpoint
from tests.factories.uploads import needs_bm25, upload

QUESTION = "annual leave of new employees"
DOCUMENTS = {
    "leave": "New employees take fifteen days of annual leave. Sick leave needs a certificate.",
    "handbook": "Employees are welcome. New employees get a handbook and a badge.",
    "annual": "The annual report comes in spring. The annual meeting is in June.",
    "office": "The office closes at six. Visitors sign in at the front desk.",
    "年假": "员工每年有十五天带薪年假。",
    **{f"far-{n}": f"Nothing of it {n}: {word}." for n, word in enumerate(["zinc", "tin", "iron"])},
}
DIMENSIONS = 64


@pytest.fixture
def filled(portal: Portal) -> dict[str, DocumentSummary]:
    return fill(portal)


def fill(portal: Portal) -> dict[str, DocumentSummary]:
    return {name: portal.add(words, name=f"{name}.txt") for name, words in DOCUMENTS.items()}


def search(client: FlaskClient, portal: Portal, query: str = QUESTION, **body: Any) -> Any:
    answer = client.post("/v1/search", headers=portal.headers(), json={"query": query} | body)
    assert answer.status_code == 200, answer.json
    return answer.json


def titles(found: Any) -> list[str]:
    return [hit["title"] for hit in found["hits"]]


# --- one document -------------------------------------------------------------------------------


def test_document_has_exactly_the_fields_that_are_stored(
    client: FlaskClient, portal: Portal
) -> None:
    body = "  First line.\n\n第二行：<b>not markup</b> -- and no SQL\n"
    document = portal.add(body, name="note.txt", title="A note")
    shown = client.get(f"/v1/documents/{document.id}", headers=portal.headers()).json
    _, indexed = library.read_text(portal.services, portal.admin, document.id)
    assert set(shown) == {"id", "title", "body", "created_at"}
    assert (shown["id"], shown["title"], shown["body"]) == (str(document.id), "A note", indexed)
    assert datetime.fromisoformat(shown["created_at"]) == document.created_at
    assert "<b>not markup</b> -- and no SQL" in shown["body"]


def test_document_that_is_missing_foreign_or_in_the_trash_is_not_found(
    client: FlaskClient, portal: Portal
) -> None:
    owner, other = portal.user("owner"), portal.user("other")
    private = portal.add("secret words", owner=owner, visibility=Visibility.PRIVATE)
    trashed = portal.add("thrown away", name="b.txt", owner=other)
    library.delete_document(portal.services, other, trashed.id)
    answers = [
        client.get(f"/v1/documents/{one}", headers=portal.headers(other))
        for one in (uuid4(), private.id, trashed.id)
    ]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.json["error"]["message"] for answer in answers}) == 1
    own = client.get(f"/v1/documents/{private.id}", headers=portal.headers(owner))
    assert (own.status_code, own.json["body"]) == (200, "secret words")


def test_document_that_was_not_read_yet_has_no_text(portal: Portal) -> None:
    client = portal.client()
    receipt = uploads.store_upload(
        portal.services, portal.admin, stream=upload("still queued"), file_name="queued.txt"
    )
    path = f"/v1/documents/{receipt.document.id}"
    assert client.get(path).status_code == 404
    assert receipt.document.job_id is not None
    indexing.index_document(portal.services, receipt.document.job_id)
    assert client.get(path).json["body"] == "still queued"


def test_list_pages_through_all_documents_with_text(client: FlaskClient, portal: Portal) -> None:
    owner, reader = portal.user("owner"), portal.user("reader")
    shown = [portal.add(f"text {n}", name=f"{n}.txt", owner=owner) for n in range(5)]
    portal.add("secret", name="s.txt", owner=owner, visibility=Visibility.PRIVATE)
    library.delete_document(
        portal.services, owner, portal.add("gone", name="gone.txt", owner=owner).id
    )
    uploads.store_upload(
        portal.services, owner, stream=upload("not read yet"), file_name="queued.txt"
    )
    headers, listed, cursor = portal.headers(reader), [], ""
    while cursor is not None:
        page = client.get(f"/v1/documents?limit=2&cursor={cursor}", headers=headers).json
        assert page["total_count"] == len(shown)
        listed += page["documents"]
        cursor = page["next_cursor"]
    assert [one["id"] for one in listed] == [str(one.id) for one in reversed(shown)]
    assert all(set(one) == {"id", "title", "created_at"} for one in listed)
    assert all(
        client.get(f"/v1/documents/{one['id']}", headers=headers).status_code == 200
        for one in listed
    )
    assert client.get("/v1/documents?cursor=nonsense", headers=headers).status_code == 400


# --- scores -------------------------------------------------------------------------------------


def recomputed(
    services: Services, user: User, query: str, *, w_text: float, w_vec: float
) -> list[tuple[float, float, float, UUID]]:
    """Return (final, text, vector, document) rows, best first, computed with PostgreSQL's own
    distance and BM25, without the portal's search."""
    vector = HashingEmbedder().embed_query(query)
    statement = text(
        """
        SELECT d.id, 1 - (e.embedding <=> CAST(:vector AS vector)) AS cosine,
               -(c.terms <@> to_bm25query(:words, 'ix_document_chunks_bm25')) AS bm25
        FROM documents d
        JOIN document_chunks c ON c.job_id = d.current_job_id
        JOIN chunk_embeddings e ON e.chunk_id = c.id
        WHERE d.deleted_at IS NULL AND (d.visibility = 'shared' OR d.owner_id = :user_id)
        """
    )
    binds = {"vector": str(vector.tolist()), "words": " ".join(query_terms(query))}
    with services.database.begin() as session:
        session.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))
        rows = session.execute(statement, binds | {"user_id": user.id}).all()
    most = max(row.bm25 for row in rows)
    best: dict[UUID, tuple[float, float, float, UUID]] = {}
    for row in rows:
        share, cosine = row.bm25 / most if row.bm25 > 0 else 0.0, row.cosine
        if share > 0 or cosine > 0:
            scored = (w_text * share + w_vec * cosine, share, cosine, row.id)
            best[row.id] = max(best.get(row.id, scored), scored)
    return sorted(best.values(), reverse=True)


@needs_bm25
@for_each(("w_text", "w_vec"), [(0.35, 0.65), (1.0, 0.0), (0.0, 1.0), (2.0, 0.5), (0.01, 300.0)])
def test_ranking_is_what_postgresql_computes(
    client: FlaskClient, portal: Portal, filled: dict[str, DocumentSummary],
    w_text: float, w_vec: float,
) -> None:  # fmt: skip
    expected = recomputed(portal.services, portal.admin, QUESTION, w_text=w_text, w_vec=w_vec)
    assert 0 < len(expected) < len(DOCUMENTS)
    found = search(client, portal, limit=50, weights={"text": w_text, "vector": w_vec})
    assert {hit["document_id"] for hit in found["hits"]} == {str(one) for *_, one in expected}
    for hit, (final, share, cosine, _) in zip(found["hits"], expected, strict=True):
        # Single precision, like PostgreSQL's own distances.
        assert hit["final_score"] == pytest.approx(final, rel=1e-6, abs=1e-6)
        assert (hit["text_score"], hit["vec_score"]) == pytest.approx((share, cosine), abs=1e-6)


def test_final_score_is_exactly_the_weighted_sum_of_the_scores_shown(
    client: FlaskClient, portal: Portal, filled: dict[str, DocumentSummary]
) -> None:
    for weights in (None, {"text": 0.2}, {"vector": 0.0}, {"text": 3.7, "vector": 11.1}):
        found = search(client, portal, weights=weights, limit=50)
        used = found["weights"]
        assert used == {"text": 0.35, "vector": 0.65} | (weights or {})
        for hit in found["hits"]:
            parts = used["text"] * hit["text_score"], used["vector"] * hit["vec_score"]
            assert hit["final_score"] == sum(parts)
            assert hit["id"] == hit["document_id"]
            assert hit["text_score"] > 0 or hit["vec_score"] > 0
        scores = [hit["final_score"] for hit in found["hits"]]
        assert scores == sorted(scores, reverse=True)


def test_all_entry_points_of_a_search_return_the_same_answer(
    client: FlaskClient, portal: Portal, filled: dict[str, DocumentSummary]
) -> None:
    asked = [search(client, portal, limit=5) for _ in range(3)]
    by_address = client.get(
        "/v1/search", query_string={"q": QUESTION, "limit": "5"}, headers=portal.headers()
    ).json
    other_process = create_app(portal.services).test_client()
    assert asked[0] == asked[1] == asked[2] == by_address == search(other_process, portal, limit=5)
    for limit in range(1, 6):
        assert search(client, portal, limit=limit)["hits"] == asked[0]["hits"][:limit]


def test_equal_documents_are_both_there_and_always_in_the_same_order(
    client: FlaskClient, portal: Portal
) -> None:
    for number in range(4):
        portal.add(DOCUMENTS["leave"], name=f"copy-{number}.txt", owner=portal.user(f"p{number}"))
    found = search(client, portal)
    # The documents differ only in name and owner, which do not affect scores.
    assert len(titles(found)) == 4
    assert search(client, portal) == found
    assert search(client, portal, limit=2)["hits"] == found["hits"][:2]


def test_weights_that_are_both_0_are_refused_with_the_reason(
    client: FlaskClient, portal: Portal
) -> None:
    body = {"query": QUESTION, "weights": {"text": 0, "vector": 0}}
    refused = client.post("/v1/search", json=body, headers=portal.headers())
    assert refused.status_code == 422
    assert refused.json["error"]["details"] == {"json": {"weights": ["must not both be 0"]}}


def test_configured_weights_count_where_the_request_says_none(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(search={"weights": {"text": 0.9, "vector": 0.1}})
    portal = of(services)
    fill(portal)
    found = search(create_app(services).test_client(), portal)
    assert found["weights"] == {"text": 0.9, "vector": 0.1}
    hit = found["hits"][0]
    assert hit["final_score"] == 0.9 * hit["text_score"] + 0.1 * hit["vec_score"]


def of(services: Services) -> Portal:
    return Portal.of(services)


# --- one hit a document -------------------------------------------------------------------------


def test_document_is_shown_once_by_its_best_chunk(make_services: Callable[..., Services]) -> None:
    services = make_services(ingest={"chunk_tokens": 50})
    portal = of(services)
    filler = "The weather of this coast changes every hour, and sailors watch it closely. " * 12
    document = portal.add(f"{filler}\n\n{DOCUMENTS['leave']}\n\n{filler}", name="long.txt")
    assert document.chunk_count > 2
    found = search(create_app(services).test_client(), portal)
    (hit,) = found["hits"]
    assert "annual leave" in hit["excerpt"]
    best = recomputed(services, portal.admin, QUESTION, w_text=0.35, w_vec=0.65)[0]
    assert hit["final_score"] == pytest.approx(best[0], abs=1e-6)


def test_one_document_that_fills_all_candidates_hides_no_other(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(ingest={"chunk_tokens": 50})
    portal = of(services)
    lines = (
        f"Rule {n}: annual leave of new employees, annual leave of all employees. "
        f"Case {n} {'x' * (n % 7)}: new employees ask for annual leave in writing, in step {n}."
        for n in range(420)
    )
    flood = portal.add("\n\n".join(lines), name="flood.txt")
    assert flood.chunk_count > 210
    for name, words in DOCUMENTS.items():
        portal.add(words, name=f"{name}.txt")
    client = create_app(services).test_client()
    found = search(client, portal, limit=4)
    assert titles(found)[0] == "flood"
    assert {"leave", "handbook", "annual"} == set(titles(found)[1:])
    everything = recomputed(services, portal.admin, QUESTION, w_text=0.35, w_vec=0.65)
    assert len(search(client, portal, limit=100)["hits"]) == len(everything)


# --- who may see what ---------------------------------------------------------------------------


def test_only_enabled_documents_are_found(
    client: FlaskClient, portal: Portal, filled: dict[str, DocumentSummary]
) -> None:
    owner, other = portal.user("owner"), portal.user("other")
    portal.add(QUESTION, name="private.txt", owner=owner, visibility=Visibility.PRIVATE)
    switches.set_switch(portal.services, other, None, filled["leave"].id, enabled=False)
    library.delete_document(portal.services, portal.admin, filled["handbook"].id)
    theirs = client.post("/v1/search", headers=portal.headers(other), json={"query": QUESTION}).json
    assert not {"private", "leave", "handbook"} & set(titles(theirs))
    assert "annual" in titles(theirs)
    own = client.post("/v1/search", headers=portal.headers(owner), json={"query": QUESTION}).json
    assert titles(own)[0] == "private"


# --- what is refused ----------------------------------------------------------------------------


WRONG_BODIES: list[dict[str, Any]] = [
    {},
    {"query": ""},
    {"query": "  \t"},
    {"query": "\u200b"},
    {"query": "x" * 4097},
    {"query": 7},
    {"query": "x", "limit": 0, "k": 0},
    {"query": "x", "limit": 101, "k": 101},
    {"query": "x", "weights": {"text": 0, "vector": 0}},
    {"query": "x", "weights": {"text": -0.1}},
    {"query": "x", "weights": {"vector": 1e9}},
    {"query": "x", "weights": {"text": float("nan")}},
    {"query": "x", "weights": {"bm25": 1}},
    {"query": "x", "weights": [1, 2]},
    {"query": "x", "top_n": 3},
]


@pytest.mark.parametrize("path", ["/v1/search", "/v1/answer"])
def test_body_with_a_wrong_value_is_refused(portal: Portal, path: str) -> None:
    client = portal.client()
    for body in WRONG_BODIES:
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json["error"]["code"]) == (422, "invalid"), body


def test_address_with_a_wrong_value_is_refused(portal: Portal) -> None:
    client = portal.client()
    for query in ("", "q=", "q=x&limit=0", "q=x&limit=a", "q=x&k=3", "q=%20"):
        answer = client.get(f"/v1/search?{query}")
        assert (answer.status_code, answer.json["error"]["code"]) == (422, "invalid"), query


# --- what is missing ----------------------------------------------------------------------------


def endpoint_settings(url: str) -> dict[str, Any]:
    return {
        "provider": "openai", "model": "some-model", "api_base": url, "dimensions": DIMENSIONS,
    }  # fmt: skip


@needs_bm25
@pytest.mark.parametrize("fault", ["slow", "dead"])
def test_embeddings_endpoint_that_does_not_answer_in_2_seconds_leaves_words(
    make_services: Callable[..., Services], fault: str
) -> None:
    with fake_endpoint(dimensions=DIMENSIONS) as endpoint:
        services = make_services(embedding=endpoint_settings(endpoint.url))
        portal = of(services)
        fill(portal)
        client = create_app(services).test_client()
        whole = search(client, portal)
        assert (whole["degraded"], whole["reasons"]) == (False, [])
        endpoint.delay_s = 30 if fault == "slow" else 0
        if fault == "slow":
            found, seconds = timed(client, portal)
    if fault == "dead":
        found, seconds = timed(client, portal)
    assert seconds < 3.5
    assert (found["degraded"], found["reasons"]) == (True, ["embedder_unavailable"])
    assert titles(found)[0] == "leave"
    assert all(hit["vec_score"] == 0 and hit["text_score"] > 0 for hit in found["hits"])
    assert found["hits"][0]["final_score"] == 0.35 * found["hits"][0]["text_score"]


def timed(client: FlaskClient, portal: Portal) -> tuple[Any, float]:
    started = time.monotonic()
    return search(client, portal, "annual leave of some employees"), time.monotonic() - started


def test_search_without_a_keyword_index_uses_vectors_only(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(search={"keyword_backend": "off"})
    portal = of(services)
    fill(portal)
    found = search(create_app(services).test_client(), portal)
    assert (found["degraded"], found["reasons"]) == (True, ["keyword_unavailable"])
    assert titles(found)[0] == "leave"
    assert all(hit["text_score"] == 0 and hit["vec_score"] > 0 for hit in found["hits"])


def test_search_without_a_vector_store_is_refused(make_services: Callable[..., Services]) -> None:
    services = make_services(vector_store_enabled=False)
    portal = of(services)
    client = create_app(services).test_client()
    headers = portal.headers()
    for path, body in (
        ("/v1/search", {"query": "x"}), ("/v1/answer", {"query": "x"}), ("/v1/ingest/embed", {}),
    ):  # fmt: skip
        answer = client.post(path, headers=headers, json=body)
        assert (answer.status_code, answer.json["error"]["code"]) == (503, "vector_store_disabled")


def test_reranking_does_not_change_the_order(
    portal: Portal, filled: dict[str, DocumentSummary]
) -> None:
    class Backwards:
        name = "backwards"

        def load(self) -> None: ...

        def scores(self, query: str, chunks: list[str], *, deadline_s: float) -> list[float]:
            return [float(place) for place, _ in enumerate(chunks)]

    plain = create_app(portal.services).test_client()
    reranked = create_app(replace(portal.services, reranker=Backwards())).test_client()
    assert search(plain, portal) == search(reranked, portal)
