"""Models that are built while another one serves."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from portal.domain.embedding import Vector
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import Conflict, EmbedderUnavailable, NoSuchModel
from portal.processes import worker
from portal.processes.worker import create_queue
from portal.services.documents import library
from portal.services.models import builds, catalog, switching
from portal.services.operations import health
from portal.store.embedding_models import builds as model_build_store
from portal.store.embedding_models import registry
from portal.store.embedding_models.builds import BUILD_QUEUE, building
from portal.store.embedding_models.vector_index import standing_indexes
from tests.conftest import Portal
from tests.factories.servers.endpoint import wait
from tests.factories.uploads import run_apart
from tests.integration.models.building.conftest import NEW, OLD, TEXTS, active, build, summary


def test_new_model_is_built_beside_the_old_one_and_waits(filled: Portal) -> None:
    assert build(filled) == NEW
    assert active(filled) == OLD
    built = summary(filled, NEW)
    assert built.model.status == "ready"
    assert built.coverage.missing == 0
    assert built.size.vectors == built.coverage.chunks == len(TEXTS)
    assert built.size.index is not None
    assert built.size.index.method == "hnsw"
    assert built.build.stage is None
    assert built.build.comparison is not None


def test_interrupted_build_keeps_its_vectors(filled: Portal) -> None:
    model = catalog.register(filled.services, "hashing:hashing-64@64")
    answers = iter([False, True])
    with pytest.raises(builds.Paused):
        list(
            builds.build(
                filled.services, model.name, batch_size=1, should_stop=lambda: next(answers)
            )
        )
    assert summary(filled, NEW).size.vectors == 1
    with pytest.raises(Conflict):
        switching.switch(filled.services, NEW)
    list(builds.build(filled.services, NEW, batch_size=1))
    assert summary(filled, NEW).coverage.missing == 0


def test_a_batch_is_stored_whole_or_not_at_all(
    filled: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = catalog.register(filled.services, "hashing:hashing-64@64")
    embed = HashingEmbedder.embed_chunks
    answers = iter([True, False])

    def fail_later(self: HashingEmbedder, texts: list[str]) -> Vector:
        if not next(answers):
            raise EmbedderUnavailable(reason="the endpoint does not answer")
        return embed(self, texts)

    catalog.loaded(filled.services, model)  # Load it first: calibration embeds texts too.
    monkeypatch.setattr(HashingEmbedder, "embed_chunks", fail_later)
    with pytest.raises(EmbedderUnavailable):
        list(builds.build(filled.services, NEW, batch_size=2))
    state = summary(filled, NEW)
    assert state.size.vectors == 2
    assert state.build.stage == "failed"
    assert state.build.failure
    assert state.build.failure.code == "embedder_unavailable"


def test_documents_added_while_two_models_are_kept_are_embedded_by_both(filled: Portal) -> None:
    build(filled)
    filled.add("A lamp is lit twenty minutes before sunset.", name="lamp.txt")
    assert summary(filled, NEW).coverage.missing == 0
    assert summary(filled, OLD).coverage.missing == 0
    switching.switch(filled.services, NEW)
    filled.add("The last train leaves at nine.", name="train.txt")
    assert summary(filled, OLD).coverage.missing == 0
    gone_back = switching.rollback(filled.services)
    assert gone_back.model.name == OLD
    assert summary(filled, OLD).coverage.missing == 0


def test_model_that_lags_does_not_delay_documents(
    filled: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(filled)
    embed = HashingEmbedder.embed_chunks

    def refuse(self: HashingEmbedder, texts: list[str]) -> Vector:
        if self.name == NEW:
            raise EmbedderUnavailable(reason="the endpoint does not answer")
        return embed(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_chunks", refuse)
        added = filled.add("The last train leaves at nine.", name="train.txt")
    assert added.status == "ready"
    assert summary(filled, NEW).coverage.missing == 1
    with pytest.raises(Conflict):
        switching.switch(filled.services, NEW)
    list(builds.build(filled.services, NEW))
    assert switching.switch(filled.services, NEW).model.name == NEW


def test_rollback_to_a_model_that_fell_behind_must_be_forced(
    filled: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(filled)
    switching.switch(filled.services, NEW)
    embed = HashingEmbedder.embed_chunks

    def refuse(self: HashingEmbedder, texts: list[str]) -> Vector:
        if self.name == OLD:
            raise EmbedderUnavailable(reason="the endpoint does not answer")
        return embed(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbedder, "embed_chunks", refuse)
        filled.add("The last train leaves at nine.", name="train.txt")
    with pytest.raises(Conflict, match="1 passages"):
        switching.rollback(filled.services)
    assert active(filled) == NEW
    assert switching.rollback(filled.services, force=True).model.name == OLD
    list(builds.build(filled.services, OLD))
    assert summary(filled, OLD).model.is_complete


def test_model_registered_in_the_middle_of_an_ingestion_misses_nothing(
    filled: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = HashingEmbedder.embed_chunks
    registered: list[str] = []

    def register_meanwhile(self: HashingEmbedder, texts: list[str]) -> Vector:
        vectors = embed(self, texts)
        if not registered:
            registered.append(NEW)
            catalog.register(filled.services, "hashing:hashing-64@64")
        return vectors

    monkeypatch.setattr(HashingEmbedder, "embed_chunks", register_meanwhile)
    filled.add("The last train leaves at nine.", name="train.txt")
    assert summary(filled, NEW).size.vectors == 1


def test_build_embeds_what_the_serving_model_lacks(filled: Portal) -> None:
    before = filled.scalars("SELECT chunk_id FROM chunk_embeddings ORDER BY 1")
    filled.execute("DELETE FROM chunk_embeddings")
    steps = list(builds.build(filled.services, OLD, batch_size=2))
    assert [step.done for step in steps if step.stage == "embedding"] == [0, 2, 3]
    assert filled.scalars("SELECT chunk_id FROM chunk_embeddings ORDER BY 1") == before
    assert next(builds.build(filled.services, OLD)).done == 3
    assert filled.scalars("SELECT chunk_id FROM chunk_embeddings ORDER BY 1") == before


def test_documents_in_the_trash_are_embedded_too(filled: Portal) -> None:
    document = filled.add("Restored later.", name="later.txt")
    library.delete_document(filled.services, filled.admin, document.id)
    build(filled)
    assert summary(filled, NEW).size.vectors == len(TEXTS) + 1


def test_purging_takes_the_vectors_of_every_model(filled: Portal) -> None:
    document = filled.add("Gone for good.", name="gone.txt")
    build(filled)
    library.delete_document(filled.services, filled.admin, document.id)
    library.purge_document(filled.services, filled.admin, document.id)
    assert filled.scalars("SELECT count(*) FROM chunk_embeddings") == [2 * len(TEXTS)]


def test_serving_model_cannot_be_dropped_and_a_dropped_one_leaves_nothing(filled: Portal) -> None:
    build(filled)
    partition = summary(filled, NEW).model.partition
    with pytest.raises(Conflict):
        switching.drop(filled.services, OLD)
    switching.drop(filled.services, NEW)
    assert filled.scalars(f"SELECT to_regclass('{partition}')") == [None]
    with pytest.raises(NoSuchModel):
        catalog.find(filled.services, NEW)
    with pytest.raises(Conflict):
        switching.rollback(filled.services)


def test_only_one_process_builds_a_model(filled: Portal) -> None:
    model = catalog.register(filled.services, "hashing:hashing-64@64")
    with building(filled.services.database.engine, model) as connection:
        assert connection
        with pytest.raises(Conflict):
            list(builds.build(filled.services, NEW))
        with pytest.raises(Conflict):
            switching.drop(filled.services, NEW)
    list(builds.build(filled.services, NEW))


def test_queued_build_is_done_by_a_worker_and_lost_ones_are_queued_again(filled: Portal) -> None:
    switching.request_build(filled.services, "hashing:hashing-64@64")
    switching.request_build(filled.services, NEW)
    task = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'build_model'"
    assert filled.scalars(task) == [1]
    filled.execute("DELETE FROM procrastinate_jobs")
    builds.requeue_lost(filled.services)
    assert filled.scalars(task) == [1]
    builds.build_slice(filled.services, NEW, should_stop=lambda: False)
    assert summary(filled, NEW).model.status == "ready"
    builds.requeue_lost(filled.services)
    assert filled.scalars(task) == [1]


def test_worker_builds_what_a_page_asked_for(filled: Portal) -> None:
    switching.request_build(filled.services, "hashing:hashing-64@64")
    queue = create_queue(filled.services)

    async def work() -> None:
        async with queue.open_async():
            await queue.run_worker_async(
                queues=[BUILD_QUEUE], wait=False, install_signal_handlers=False
            )

    run_apart(lambda: asyncio.run(work()))
    assert summary(filled, NEW).model.status == "ready"
    assert filled.scalars("SELECT status FROM procrastinate_jobs WHERE queue_name = 'models'") == [
        "succeeded"
    ]


def test_worker_that_is_to_end_leaves_an_index_to_the_next(filled: Portal) -> None:
    switching.request_build(filled.services, "hashing:hashing-64@64")
    building = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE state = 'active' AND query LIKE 'CREATE INDEX CONCURRENTLY%'"
    )
    with filled.services.database.begin() as reader:
        # A concurrent build waits for the end of this snapshot.
        reader.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        reader.execute(text("SELECT FROM documents"))
        with worker.working(filled.services):
            wait(lambda: filled.scalar(building), 60, "the index is not built")
        assert not filled.scalar(building)
    assert summary(filled, NEW).build.stage == "indexing"
    with worker.working(filled.services):
        wait(lambda: summary(filled, NEW).model.status == "ready", 60, "the build does not go on")


def test_build_that_its_owner_gives_up_does_not_continue(filled: Portal) -> None:
    catalog.register(filled.services, "hashing:hashing-64@64")
    steps = builds.build(filled.services, NEW, batch_size=1)
    next(steps)
    next(steps)
    steps.close()
    assert summary(filled, NEW).build.stage is None
    assert summary(filled, NEW).size.vectors == 1
    builds.requeue_lost(filled.services)
    assert filled.scalars("SELECT id FROM procrastinate_jobs WHERE queue_name = 'models'") == []


def test_a_slice_that_is_asked_to_stop_queues_the_rest(filled: Portal) -> None:
    catalog.register(filled.services, "hashing:hashing-64@64")
    builds.build_slice(filled.services, NEW, should_stop=lambda: True)
    queued = "SELECT args->>'name' FROM procrastinate_jobs WHERE queue_name = 'models'"
    assert filled.scalars(queued) == [NEW]


def test_dropped_vector_index_is_rebuilt(portal: Portal) -> None:
    portal.add("Something to embed.")
    services = portal.services
    with services.database.begin() as session:
        model = registry.find_active(session)
        (index,) = standing_indexes(session, model.partition)
        session.execute(text(f"DROP INDEX {index.name}"))
    assert health.check_vector_store(services)["vector_index"] == "missing"
    assert health.check_vector_store(services)["status"] == "degraded"
    builds.requeue_lost(services)
    builds.requeue_lost(services)
    with services.database.begin() as session:
        assert model_build_store.is_queued(session, model)
    builds.build_slice(services, model.name, should_stop=lambda: False)
    with services.database.begin() as session:
        assert [i.is_valid for i in standing_indexes(session, model.partition)] == [True]
    assert health.check_vector_store(services)["vector_index"] == "ok"
