"""POST /v1/ingest/embed stores one batch of missing vectors atomically, one call at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.embedding import Vector
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding, PortalError
from portal.services import Services
from portal.services.models import backfilling, catalog
from portal.store.embedding_models.builds import building
from tests.conftest import Portal

MODEL = "hashing-384"
PATH = "/v1/ingest/embed"


@dataclass
class Counting(HashingEmbedder):
    """Record the chunks to embed; fail or block if the test says so."""

    error: Exception | None = None
    chunks: list[str] = field(default_factory=list)
    is_asked: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__()
        self.gate.set()

    def embed_chunks(self, texts: Any) -> Vector:
        self.chunks += list(texts)
        self.is_asked.set()
        assert self.gate.wait(30)
        if self.error is not None:
            raise self.error
        return super().embed_chunks(texts)


@pytest.fixture
def lacking(portal: Portal) -> Portal:
    """Return a portal with seven chunks without vectors, as after a restored backup."""
    for number in range(7):
        portal.add(f"Passage number {number} tells of thing {number}.", name=f"{number}.txt")
    portal.execute("DELETE FROM chunk_embeddings")
    return portal


def vectors(portal: Portal) -> int:
    return int(portal.scalar("SELECT count(*) FROM chunk_embeddings") or 0)


def embed(services: Services, portal: Portal, **body: Any) -> Any:
    client: FlaskClient = create_app(services).test_client()
    return client.post(PATH, headers=portal.headers(), json=body)


def test_batches_embed_what_lacks_a_vector_until_nothing_does(lacking: Portal) -> None:
    services = lacking.services
    answers = [embed(services, lacking, batch_size=3).json for _ in range(4)]
    assert [(answer["embedded"], answer["remaining"]) for answer in answers] == [
        (3, 4),
        (3, 1),
        (1, 0),
        (0, 0),
    ]
    assert {answer["model"] for answer in answers} == {MODEL}
    assert vectors(lacking) == 7
    found = (
        create_app(services).test_client().get("/v1/search?q=thing+4", headers=lacking.headers())
    )
    assert found.json["hits"][0]["title"] == "4"
    assert found.json["hits"][0]["vec_score"] > 0
    assert catalog.find(services, MODEL).is_complete


def test_batch_is_50_where_the_request_says_nothing(lacking: Portal) -> None:
    client = create_app(lacking.services).test_client()
    answer = client.post(PATH, headers=lacking.headers())
    assert (answer.status_code, answer.json["embedded"], answer.json["remaining"]) == (200, 7, 0)
    assert backfilling.DEFAULT_BATCH == 50


@pytest.mark.parametrize(
    "fault",
    [
        EmbedderUnavailable(reason="its endpoint did not answer within 2 seconds"),
        InvalidEmbedding(reason="a number in it is not finite"),
    ],
    ids=["no answer", "no numbers"],
)
def test_failing_provider_stores_nothing_and_is_reported(
    lacking: Portal, fault: PortalError
) -> None:
    services = replace(lacking.services, embedder=Counting(fault))
    answer = embed(services, lacking, batch_size=5)
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "embedder_unavailable")
    assert vectors(lacking) == 0
    assert embed(lacking.services, lacking).json["embedded"] == 7


def test_concurrent_batches_do_no_work_twice(lacking: Portal) -> None:
    embedder = Counting()
    embedder.gate.clear()
    app, headers = create_app(replace(lacking.services, embedder=embedder)), lacking.headers()

    def ask() -> Any:
        return app.test_client().post(PATH, headers=headers, json={"batch_size": 4}).json

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(ask) for _ in range(2)]
        assert embedder.is_asked.wait(30)
        embedder.gate.set()
        answers = [one.result(60) for one in both]
    assert sorted(answer["embedded"] for answer in answers) == [3, 4]
    assert min(answer["remaining"] for answer in answers) == 0
    assert len(embedder.chunks) == len(set(embedder.chunks)) == 7
    assert vectors(lacking) == 7


def test_batch_during_a_build_is_refused(lacking: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfilling, "TIMEOUT_S", 0.2)
    services = lacking.services
    with building(services.database.engine, catalog.find(services, MODEL)) as held:
        assert held is not None
        answer = embed(services, lacking)
    assert (answer.status_code, answer.json["error"]["code"]) == (409, "conflict")
    assert vectors(lacking) == 0


def test_wrong_batches_are_refused(lacking: Portal) -> None:
    client = create_app(lacking.services).test_client()
    headers = lacking.headers()
    for body in ({"batch_size": 0}, {"batch_size": 1001}, {"batch_size": "x"}, {"size": 1}, []):
        answer = client.post(PATH, headers=headers, json=body)
        assert (answer.status_code, answer.json["error"]["code"]) == (422, "invalid"), body
    assert vectors(lacking) == 0
