"""Chunks that programs add and delete."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.domain.conversations import Citation, SourceState
from portal.domain.documents import DocumentSummary
from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.services import Services
from portal.services.answers import citing, conversations
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake import uploads
from portal.services.models import builds, catalog
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories.answers import ask, parts_of, saying
from tests.factories.cases import for_each
from tests.factories.uploads import upload
from tests.integration.documents.chunks_api.conftest import ADDED, Api, assert_envelope


def found(services: Services, user: User, query: str) -> list[UUID]:
    """Return the ids of the chunks that a keyword search finds."""
    outcome = engine.search(services, user, SearchRequest(query, top_n=50))
    return [hit.chunk_id for hit in outcome.hits if hit.text_rank]


def test_added_chunk_is_found_at_once_by_words_and_by_meaning(
    portal: Portal, api: Api, document: DocumentSummary
) -> None:
    before = library.get_summary(portal.services, portal.admin, document.id).chunk_count
    assert found(portal.services, portal.admin, "zeppelin pilots") == []
    chunk = api.add(metadata={"source_file": "pilots.md", "tags": ["air"]})
    assert chunk["chunk_index"] == before
    assert chunk["metadata"] == {"source_file": "pilots.md", "tags": ["air"]}
    assert (chunk["has_embedding"], chunk["page"], chunk["heading"]) == (True, None, None)
    (hit,) = engine.search(
        portal.services, portal.admin, SearchRequest("zeppelin pilots", top_n=1)
    ).hits
    assert str(hit.chunk_id) == chunk["id"]
    assert hit.vector_rank == hit.text_rank == 1
    assert (hit.excerpt, hit.char_start, hit.char_end) == (ADDED, None, None)
    after = library.get_summary(portal.services, portal.admin, document.id)
    assert after.chunk_count == before + 1


def test_many_chunks_are_added_in_order_with_their_indexes(api: Api) -> None:
    count = api.get().json["data"]["pagination"]["total"]
    body = {
        "chunks": [
            {"content": "alpha"},
            {"content": "beta", "chunk_index": count + 10},
            {"content": "gamma"},
        ]
    }
    added = api.post(body).json["data"]
    assert added["total"] == 3
    assert [(c["content"], c["chunk_index"]) for c in added["chunks"]] == [
        ("alpha", count + 11), ("beta", count + 10), ("gamma", count + 12)
    ]  # fmt: skip


def test_all_are_added_or_none(portal: Portal, api: Api) -> None:
    before = api.get("?limit=100").json["data"]
    for wrong, code in (
        ({"content": "beta zeppelin", "chunk_index": 0}, "chunk_index_taken"),
        ({"content": "beta zeppelin", "chunk_index": 77}, "chunk_index_taken"),
    ):
        first = {"content": "alpha zeppelin", "chunk_index": 77}
        assert_envelope(api.post({"chunks": [first, wrong]}), 409, code)
    assert api.get("?limit=100").json["data"] == before
    assert found(portal.services, portal.admin, "zeppelin") == []


@for_each(
    "body",
    [
        {},
        {"content": ""},
        {"content": " \u200b\n"},
        {"content": "x" * 20_001},
        {"content": 7},
        {"content": "x", "chunk_index": -1},
        {"content": "x", "chunk_index": 2_000_000_000},
        {"content": "x", "metadata": ["list"]},
        {"content": "x", "metadata": {"a": "x" * 20_000}},
        {"content": "x", "metadata": {"a\0": 1}},
        {"content": "x", "metadata": {"a": [[[[[[[[[1]]]]]]]]]}},
        {"content": "x", "metadata": {"a": float("nan")}},
        {"content": "x", "embedding": [1, 2]},
        {"chunks": []},
        {"chunks": [{"content": "x"}] * 101},
        {"chunks": [{"content": "x"}, {"content": " "}]},
    ],
)
def test_invalid_chunk_is_422(api: Api, body: Any) -> None:
    before = api.get().json["data"]["pagination"]
    assert_envelope(api.post(body), 422)
    assert api.get().json["data"]["pagination"] == before


def test_a_refusal_names_the_field_of_the_chunk(api: Api) -> None:
    one = api.post({"content": "leave", "chunk_index": "3"})
    several = api.post({"chunks": [{"content": "leave"}, {"content": 5}]})
    assert_envelope(one, 422)
    assert one.json["error"]["details"] == {
        "json": {"chunks.0.chunk_index": ["must be a whole number"]}
    }
    assert several.json["error"]["details"] == {"json": {"chunks.1.content": ["must be text"]}}


def test_hostile_content_is_stored_as_it_is(api: Api) -> None:
    content = "'; DROP TABLE documents; -- <script>alert(1)</script> %s :x {} \\"
    metadata = {"'; --": {"$gt": ""}, ":x": "%s", "$or": [1.5, None, True]}
    chunk = api.add(content, metadata=metadata)
    assert (chunk["content"], chunk["metadata"]) == (content, metadata)
    assert api.get(f"/{chunk['id']}").json["data"] == chunk
    assert api.add("half \ud800", metadata={"a": "\ud800"})["metadata"] == {"a": "?"}


def test_unfinished_job_accepts_no_chunks(client: FlaskClient, portal: Portal) -> None:
    waiting = uploads.store_upload(
        portal.services, portal.admin, stream=upload("waiting"), file_name="w.txt"
    ).document
    api = Api(client, portal.headers(), waiting.job_id)
    assert api.get().json["data"]["chunks"] == []
    for answer in (api.post({"content": "x"}), api.delete()):
        assert_envelope(answer, 409, "conflict")
    indexing.index_document(portal.services, waiting.job_id)
    assert api.add()["chunk_index"] == 1


def test_added_chunk_gets_a_vector_of_every_kept_model(portal: Portal, api: Api) -> None:
    second = catalog.register(portal.services, "hashing:second@64")
    for _ in builds.build(portal.services, second.name):
        pass
    chunk = api.add()
    with portal.services.database.begin() as session:
        lengths = session.scalars(
            text("SELECT vector_dims(embedding) FROM chunk_embeddings WHERE chunk_id = :id"),
            {"id": chunk["id"]},
        )
        assert sorted(lengths) == [64, portal.services.embedder.dimensions]


def test_nothing_is_added_without_an_embedder(
    portal: Portal, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = api.get().json["data"]["pagination"]

    def fail(*_: object) -> None:
        raise EmbedderUnavailable(reason="it is out")

    monkeypatch.setattr(HashingEmbedder, "embed_chunks", fail)
    assert_envelope(api.post({"content": ADDED}), 503, "embedder_unavailable")
    assert api.get().json["data"]["pagination"] == before


def test_writers_at_the_same_moment_get_different_places(
    portal: Portal, document: DocumentSummary
) -> None:
    app = create_app(portal.services)
    headers = portal.headers()
    placed: list[int] = []

    def write(number: int) -> None:
        chunk = Api(app.test_client(), headers, document.job_id).add(f"writer {number}")
        placed.append(chunk["chunk_index"])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(placed) == list(range(document.chunk_count, document.chunk_count + 6))


def test_deleted_chunk_is_found_no_more_and_leaves_no_word(
    portal: Portal, api: Api, make_services: Callable[..., Services]
) -> None:
    chunk = api.add()
    elsewhere = make_services()
    for services in (portal.services, elsewhere):
        assert [str(one) for one in found(services, portal.admin, "zeppelin")] == [chunk["id"]]
    assert api.delete(f"/{chunk['id']}").json["data"] == {"deleted": 1}
    for services in (portal.services, elsewhere):
        assert found(services, portal.admin, "zeppelin") == []
    assert_envelope(api.get(f"/{chunk['id']}"), 404)
    assert_envelope(api.delete(f"/{chunk['id']}"), 404)
    with portal.services.database.begin() as session:
        left = "SELECT count(*) FROM vocabulary WHERE word = 'zeppelin'"
        assert session.scalar(text(left)) == 0
        assert not session.scalar(
            text("SELECT count(*) FROM chunk_embeddings WHERE chunk_id = :id"), {"id": chunk["id"]}
        )


def test_delete_removes_all_chunks_or_only_added_ones(
    portal: Portal, api: Api, document: DocumentSummary
) -> None:
    own = api.get("?limit=100").json["data"]
    for number in range(3):
        api.add(f"added {number}")
    assert api.delete("?only_added=true").json["data"] == {"deleted": 3}
    assert api.get("?limit=100").json["data"] == own
    assert api.delete().json["data"] == {"deleted": document.chunk_count}
    assert api.get().json["data"]["pagination"]["total_pages"] == 0
    assert found(portal.services, portal.admin, "rule") == []
    _, kept = library.read_text(portal.services, portal.admin, document.id)
    assert kept.startswith("Rule 0")
    assert api.add()["chunk_index"] == 0


def cite(portal: Portal) -> Citation:
    """Return a citation of the added chunk."""
    talk = conversations.create(portal.services, portal.admin)
    said = saying(portal.services, f"{ADDED} [1]")
    answer = ask(said, portal.admin, talk.id, "What do zeppelin pilots earn?")
    return answer.citations[0]


def test_added_chunk_is_cited_opened_and_verified(
    client: FlaskClient, portal: Portal, api: Api, document: DocumentSummary
) -> None:
    chunk = api.add(f"Of airships. {ADDED} So it is.", chunk_index=500)
    citation = cite(portal)
    assert str(citation.chunk_id) == chunk["id"]
    assert (citation.revision_id, citation.excerpt) == (None, ADDED)
    assert chunk["content"][citation.char_start : citation.char_end] == ADDED
    assert (citation.state, citation.can_open) == (SourceState.CURRENT, True)
    verified = citing.verify(portal.services, portal.admin, citation.id)
    assert verified.stands is True
    quoted = citing.quoted_text(portal.services, portal.admin, citation.id)
    assert parts_of(quoted) == ("Of airships. ", ADDED, " So it is.")
    assert quoted.starts_text
    assert quoted.ends_text
    page = client.get(
        f"/documents/{document.id}?citation={citation.id}", headers=portal.headers()
    ).get_data(as_text=True)
    assert f'<mark id="quote" class="quote">{ADDED}</mark>' in page
    assert f'data-chunk-id="{chunk["id"]}"' in page
    assert "Added via API" in page


def test_citation_outlives_the_chunk_that_a_program_deleted(
    client: FlaskClient, portal: Portal, api: Api, document: DocumentSummary
) -> None:
    chunk = api.add()
    citation = cite(portal)
    api.delete(f"/{chunk['id']}")
    now = citing.get_citation(portal.services, portal.admin, citation.id)
    assert (now.state, now.excerpt) == (SourceState.REPLACED, ADDED)
    assert citing.verify(portal.services, portal.admin, citation.id).stands is None
    for path in (f"/citations/{citation.id}", f"/documents/{document.id}?citation={citation.id}"):
        answer = client.get(path, headers=portal.headers())
        assert answer.status_code == 200
        assert ADDED in answer.get_data(as_text=True)


def test_citation_of_the_text_survives_deletion_of_its_chunk(
    client: FlaskClient, portal: Portal, api: Api, document: DocumentSummary
) -> None:
    talk = conversations.create(portal.services, portal.admin)
    answer = ask(saying(portal.services, "It is so. [1]"), portal.admin, talk.id, "word3")
    citation = answer.citations[0]
    assert citation.revision_id is not None
    api.delete()
    assert citing.verify(portal.services, portal.admin, citation.id).stands is True
    path = f"/documents/{document.id}?citation={citation.id}"
    assert client.get(path, headers=portal.headers()).status_code == 200


def test_added_chunks_are_not_joined_with_neighbours_of_the_text(
    portal: Portal, client: FlaskClient
) -> None:
    document = portal.add("A short last sentence of the text.", name="short.txt")
    Api(client, portal.headers(), document.job_id).add()
    for query in ("short last sentence", "zeppelin"):
        hits = engine.search(portal.services, portal.admin, SearchRequest(query)).hits
        for hit in hits:
            assert not ("short last" in hit.excerpt and "Zeppelin" in hit.excerpt)


def test_chunk_behind_a_large_gap_is_shown(
    client: FlaskClient, portal: Portal, api: Api, document: DocumentSummary
) -> None:
    chunk = api.add(chunk_index=1_000_000)
    page = client.get(
        f"/documents/{document.id}?chunk={chunk['id']}&q=zeppelin", headers=portal.headers()
    ).get_data(as_text=True)
    assert "<mark>Zeppelin</mark>" in page
    assert f'data-chunk-id="{chunk["id"]}"' in page
