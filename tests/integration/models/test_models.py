"""Several embedding models: built, compared, switched, dropped."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from portal.domain.embedding import Vector
from portal.embeddings.providers import sentence_transformers
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import Conflict, EmbedderUnavailable, InvalidInput, NoSuchModel
from portal.processes.worker import create_queue
from portal.services import Services
from portal.services.documents import library
from portal.services.models import builds, catalog, comparison, switching
from portal.services.models.switching import ModelSummary
from portal.services.operations import health
from portal.store.embedding_models import builds as model_build_store
from portal.store.embedding_models import registry
from portal.store.embedding_models.builds import BUILD_QUEUE, building
from portal.store.embedding_models.vector_index import standing_indexes
from tests.conftest import Portal
from tests.factories.uploads import run_apart

OLD, NEW = "hashing-384", "hashing-64"
TEXTS = {
    "coral": "Divers must not touch the coral. The fine is five hundred.",
    "tea": "绿茶应在阴凉干燥处保存。开封后三个月内饮用完毕。",
    "bread": "Knead the dough for ten minutes. Let it rise until it has doubled.",
}


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for name, words in TEXTS.items():
        portal.add(words, name=f"{name}.txt")
    return portal


def summary(portal: Portal, name: str) -> ModelSummary:
    (found,) = (s for s in switching.list_models(portal.services) if s.model.name == name)
    return found


def build(portal: Portal, spec: str = "hashing:hashing-64@64", **options: object) -> str:
    model = catalog.register(portal.services, spec)
    list(builds.build(portal.services, model.name, **options))
    return model.name


def rows(portal: Portal, statement: str) -> list[object]:
    with portal.services.database.begin() as session:
        return list(session.scalars(text(statement)))


def active(portal: Portal) -> str:
    with portal.services.database.begin() as session:
        found = registry.find_active(session)
    assert found
    return found.name


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


def test_what_was_built_stays_when_a_build_is_cut_off(filled: Portal) -> None:
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


def test_model_that_lags_does_not_hold_up_documents(
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
    list(builds.backfill(filled.services))
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


def test_backfill_embeds_what_the_serving_model_lacks(filled: Portal) -> None:
    before = rows(filled, "SELECT chunk_id FROM chunk_embeddings ORDER BY 1")
    with filled.services.database.begin() as session:
        session.execute(text("DELETE FROM chunk_embeddings"))
    steps = list(builds.backfill(filled.services, batch_size=2))
    assert [step.done for step in steps if step.stage == "embedding"] == [0, 2, 3]
    assert rows(filled, "SELECT chunk_id FROM chunk_embeddings ORDER BY 1") == before
    assert next(builds.backfill(filled.services)).done == 3
    assert rows(filled, "SELECT chunk_id FROM chunk_embeddings ORDER BY 1") == before


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
    assert rows(filled, "SELECT count(*) FROM chunk_embeddings") == [2 * len(TEXTS)]


def test_serving_model_cannot_be_dropped_and_a_dropped_one_leaves_nothing(filled: Portal) -> None:
    build(filled)
    partition = summary(filled, NEW).model.partition
    with pytest.raises(Conflict):
        switching.drop(filled.services, OLD)
    switching.drop(filled.services, NEW)
    assert rows(filled, f"SELECT to_regclass('{partition}')") == [None]
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


def test_switching_to_what_serves_or_is_not_there_is_refused(filled: Portal) -> None:
    with pytest.raises(Conflict):
        switching.switch(filled.services, OLD)
    with pytest.raises(NoSuchModel):
        switching.switch(filled.services, "nothing")
    with pytest.raises(Conflict):
        switching.rollback(filled.services)


@pytest.mark.parametrize("spec", ["nothing", "nothing:x", "", ":"])
def test_what_names_no_model_is_refused(portal: Portal, spec: str) -> None:
    with pytest.raises(NoSuchModel):
        catalog.register(portal.services, spec)


def test_dimensions_out_of_range_are_refused(portal: Portal) -> None:
    with pytest.raises(InvalidInput):
        catalog.register(portal.services, "hashing:tiny@2")


def test_a_name_keeps_its_dimensions(portal: Portal) -> None:
    catalog.register(portal.services, "hashing:words@64")
    with pytest.raises(Conflict):
        catalog.register(portal.services, "hashing:words@128")


def test_pages_build_no_model_from_directories_of_the_server(portal: Portal, tmp_path) -> None:
    for spec in (str(tmp_path), f"sentence-transformers:{tmp_path}", "sentence-transformers:../x"):
        with pytest.raises(InvalidInput):
            switching.request_build(portal.services, spec)


def test_comparison_counts_what_each_model_finds(filled: Portal) -> None:
    build(filled)
    result = comparison.compare(filled.services, OLD, NEW)
    assert result.kind == "sampled"
    assert result.questions == len(TEXTS)
    assert [score.hit_1 for score in result.scores] == [1.0, 1.0]
    assert result.overlap_10 == 1.0


def test_comparison_takes_the_question_sets_of_the_evaluation(filled: Portal, tmp_path) -> None:
    build(filled)
    (tmp_path / "mine.queries.jsonl").write_text(
        '{"id": 1, "text": "coral fine", "qrels": {"coral": 1, "tea": 0}}\n\n'
        '{"id": 2, "text": "who knows", "qrels": {"elsewhere": 1}}\n',
        encoding="utf-8",
    )
    result = comparison.compare(filled.services, OLD, NEW, questions_dir=tmp_path)
    assert (result.kind, result.questions) == ("set", 1)
    assert result.scores[0].mrr_10 == 1.0
    (tmp_path / "mine.queries.jsonl").write_text("not json", encoding="utf-8")
    with pytest.raises(InvalidInput):
        comparison.compare(filled.services, OLD, NEW, questions_dir=tmp_path)


def test_comparison_finds_what_a_set_calls_by_ids_of_its_own(
    filled: Portal, tmp_path: Path
) -> None:
    build(filled)
    chunks = [{"id": 1, "title": "coral", "text": "…"}, {"id": "3", "title": "tea", "text": "…"}]
    questions = [
        {"id": "1", "text": "coral fine", "qrels": {"1": 1}},
        {"id": "2", "text": "绿茶保存", "qrels": {"3": "1.0", "1": 0}},
        {"id": "3", "text": "who knows", "qrels": {"9": 1}},
    ]
    for kind, rows_ in (("docs", chunks), ("queries", questions)):
        lines = "\n".join(json.dumps(row) for row in rows_)
        (tmp_path / f"mine.{kind}.jsonl").write_text(lines, encoding="utf-8-sig")
    result = comparison.compare(filled.services, OLD, NEW, questions_dir=tmp_path)
    assert (result.kind, result.questions) == ("set", 2)
    assert result.scores[0].hit_10 == 1.0


@pytest.mark.parametrize("line", ["{", "[]", '{"title": "coral"}'])
def test_chunks_of_a_set_that_cannot_be_read_are_named(
    filled: Portal, tmp_path: Path, line: str
) -> None:
    (tmp_path / "mine.docs.jsonl").write_text(f"\n{line}", encoding="utf-8")
    (tmp_path / "mine.queries.jsonl").write_text('{"text": "coral", "qrels": {"1": 1}}')
    with pytest.raises(InvalidInput, match=r"line 2 of mine\.docs\.jsonl"):
        comparison.compare(filled.services, OLD, OLD, questions_dir=tmp_path)


def test_configured_model_serves_an_empty_portal_and_takes_over_no_full_one(
    portal: Portal, make_services
) -> None:
    changed = make_services(embedding={"provider": "hashing", "dimensions": 96})
    assert catalog.refresh_registration(changed).name == "hashing-96"
    assert active(portal) == "hashing-96"
    assert [s.model.name for s in switching.list_models(portal.services)] == ["hashing-96"]
    Portal(changed, portal.admin).add("Something.")
    again = make_services(embedding={"provider": "hashing", "dimensions": 128})
    assert catalog.refresh_registration(again).name == "hashing-96"


def test_documents_are_embedded_by_what_serves_not_by_what_is_configured(
    filled: Portal, make_services
) -> None:
    build(filled)
    switching.switch(filled.services, NEW)
    switching.drop(filled.services, OLD)
    filled.add("The last train leaves at nine.", name="train.txt")
    catalog.refresh_registration(filled.services)
    assert [s.model.name for s in switching.list_models(filled.services)] == [NEW]
    assert summary(filled, NEW).coverage.missing == 0


def test_queued_build_is_done_by_a_worker_and_lost_ones_are_queued_again(filled: Portal) -> None:
    switching.request_build(filled.services, "hashing:hashing-64@64")
    switching.request_build(filled.services, NEW)
    task = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'build_model'"
    assert rows(filled, task) == [1]
    with filled.services.database.begin() as session:
        session.execute(text("DELETE FROM procrastinate_jobs"))
    builds.requeue_lost(filled.services)
    assert rows(filled, task) == [1]
    builds.build_slice(filled.services, NEW, should_stop=lambda: False)
    assert summary(filled, NEW).model.status == "ready"
    builds.requeue_lost(filled.services)
    assert rows(filled, task) == [1]


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
    assert rows(filled, "SELECT status FROM procrastinate_jobs WHERE queue_name = 'models'") == [
        "succeeded"
    ]


def test_build_that_its_owner_gives_up_does_not_continue(filled: Portal) -> None:
    catalog.register(filled.services, "hashing:hashing-64@64")
    steps = builds.build(filled.services, NEW, batch_size=1)
    next(steps)
    next(steps)
    steps.close()
    assert summary(filled, NEW).build.stage is None
    assert summary(filled, NEW).size.vectors == 1
    builds.requeue_lost(filled.services)
    assert rows(filled, "SELECT id FROM procrastinate_jobs WHERE queue_name = 'models'") == []


def test_a_slice_that_is_asked_to_stop_queues_the_rest(filled: Portal) -> None:
    catalog.register(filled.services, "hashing:hashing-64@64")
    builds.build_slice(filled.services, NEW, should_stop=lambda: True)
    queued = "SELECT args->>'name' FROM procrastinate_jobs WHERE queue_name = 'models'"
    assert rows(filled, queued) == [NEW]


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


class Encoder:
    """A fake sentence-transformers model; texts that share words get similar vectors."""

    def get_embedding_dimension(self) -> int:
        return 64

    def encode(self, texts: list[str], **_: object) -> Vector:
        return HashingEmbedder(dimensions=64).embed_chunks(texts)


def test_comparison_waits_for_a_model_that_takes_longer_to_load_than_a_question_may(
    make_services: Callable[..., Services],
    filled: Portal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = tmp_path / "slow-model"
    directory.mkdir()
    monkeypatch.setattr(sentence_transformers, "load_model", lambda _: Encoder())
    model = catalog.register(filled.services, str(directory))
    list(builds.build(filled.services, model.name))
    go_on = threading.Event()

    def load(_: str) -> Encoder:
        assert go_on.wait(20)
        return Encoder()

    monkeypatch.setattr(sentence_transformers, "load_model", load)
    monkeypatch.setattr(catalog, "PATIENCE_S", 0.1)
    cold = make_services(embedding={"provider": "hashing", "timeout_s": 0.1})
    threading.Timer(1.0, go_on.set).start()
    compared = comparison.compare(cold, OLD, "slow-model")
    assert compared.scores[1].hit_10 == 1
    assert compared.scores[1].embed_ms < 500  # Loading the model is not counted.


@pytest.mark.parametrize("path", ["/nowhere/model", "./nowhere", "~/nowhere/model"])
def test_directory_that_is_not_there_is_reported(portal: Portal, path: str) -> None:
    with pytest.raises(InvalidInput, match="there is no directory"):
        catalog.register(portal.services, path)
