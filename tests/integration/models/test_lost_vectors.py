"""Workers detect lost vectors and embed the chunks again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.domain.embedding import Vector
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.services.models import builds
from portal.services.models.vector_rounds import VectorRounds
from portal.services.operations import health, maintenance
from portal.store.embedding_models import registry
from tests.conftest import Portal

MODEL = "hashing-384"


def queued(portal: Portal) -> list[object]:
    return portal.scalars(
        "SELECT args->>'name' FROM procrastinate_jobs"
        " WHERE task_name = 'build_model' AND status = 'todo'"
    )


def work(portal: Portal) -> None:
    """Process the queue as a worker does."""
    for name in queued(portal):
        portal.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'build_model'")
        builds.build_slice(portal.services, str(name), should_stop=lambda: False)


def missing(portal: Portal) -> int:
    counts = health.count(portal.services)
    assert counts is not None
    return counts.everything["missing_embeddings"]


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for number in range(5):
        portal.add(f"Note number {number}.", name=f"note-{number}.txt")
    return portal


def test_housekeeping_restores_deleted_vectors(filled: Portal) -> None:
    maintenance.run(filled.services)
    assert queued(filled) == []
    filled.execute("DELETE FROM chunk_embeddings")
    assert missing(filled) == 5
    maintenance.run(filled.services)
    maintenance.run(filled.services)
    assert queued(filled) == [MODEL]
    work(filled)
    assert missing(filled) == 0
    maintenance.run(filled.services)
    assert queued(filled) == []


def test_one_lost_vector_is_found_within_a_few_rounds(filled: Portal) -> None:
    portal = Portal(replace(filled.services, vector_rounds=VectorRounds(chunks=2)), filled.admin)
    [last] = portal.scalars("SELECT id FROM document_chunks ORDER BY id DESC LIMIT 1")
    portal.execute(f"DELETE FROM chunk_embeddings WHERE chunk_id = '{last}'")
    with portal.services.database.begin() as session:
        model = registry.find_active(session)
        assert model is not None
        rounds = portal.services.vector_rounds
        found = [rounds.find_missing(session, model) for _ in range(6)]
    assert found == [False, False, True, False, False, True]


def test_failed_build_is_retried_later_and_not_at_once(
    filled: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.execute("DELETE FROM chunk_embeddings")

    def refuse(self: HashingEmbedder, texts: list[str]) -> Vector:
        raise EmbedderUnavailable(reason="the endpoint does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_chunks", refuse)
        builds.requeue_lost(filled.services)
        work(filled)
    for _ in range(3):
        builds.requeue_lost(filled.services)
    assert queued(filled) == []
    filled.execute("UPDATE embedding_models SET noted_at = now() - interval '11 minutes'")
    builds.requeue_lost(filled.services)
    assert queued(filled) == [MODEL]
    work(filled)
    assert missing(filled) == 0
