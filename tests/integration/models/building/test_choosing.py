"""Which model serves, and how models are named and compared."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.domain.embedding import Vector
from portal.embeddings.providers import sentence_transformers
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import Conflict, InvalidInput, NoSuchModel
from portal.services import Services
from portal.services.models import builds, catalog, comparison, switching
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.models.building.conftest import NEW, OLD, TEXTS, active, build, summary


def test_switching_to_the_active_or_a_missing_model_is_refused(filled: Portal) -> None:
    with pytest.raises(Conflict):
        switching.switch(filled.services, OLD)
    with pytest.raises(NoSuchModel):
        switching.switch(filled.services, "nothing")
    with pytest.raises(Conflict):
        switching.rollback(filled.services)


@for_each("spec", ["nothing", "nothing:x", "", ":"])
def test_unknown_model_is_refused(portal: Portal, spec: str) -> None:
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


def test_comparison_uses_the_question_sets_of_the_evaluation(filled: Portal, tmp_path) -> None:
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


def test_comparison_maps_the_ids_of_a_question_set(filled: Portal, tmp_path: Path) -> None:
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
def test_unreadable_line_of_a_question_set_is_named(
    filled: Portal, tmp_path: Path, line: str
) -> None:
    (tmp_path / "mine.docs.jsonl").write_text(f"\n{line}", encoding="utf-8")
    (tmp_path / "mine.queries.jsonl").write_text('{"text": "coral", "qrels": {"1": 1}}')
    with pytest.raises(InvalidInput, match=r"line 2 of mine\.docs\.jsonl"):
        comparison.compare(filled.services, OLD, OLD, questions_dir=tmp_path)


def test_configured_model_serves_an_empty_portal_but_not_a_filled_one(
    portal: Portal, make_services
) -> None:
    changed = make_services(embedding={"provider": "hashing", "dimensions": 96})
    assert catalog.refresh_registration(changed).name == "hashing-96"
    assert active(portal) == "hashing-96"
    assert [s.model.name for s in switching.list_models(portal.services)] == ["hashing-96"]
    Portal(changed, portal.admin).add("Something.")
    again = make_services(embedding={"provider": "hashing", "dimensions": 128})
    assert catalog.refresh_registration(again).name == "hashing-96"


def test_documents_are_embedded_by_the_active_model_not_the_configured_one(
    filled: Portal, make_services
) -> None:
    build(filled)
    switching.switch(filled.services, NEW)
    switching.drop(filled.services, OLD)
    filled.add("The last train leaves at nine.", name="train.txt")
    catalog.refresh_registration(filled.services)
    assert [s.model.name for s in switching.list_models(filled.services)] == [NEW]
    assert summary(filled, NEW).coverage.missing == 0


class Encoder:
    """A fake sentence-transformers model; texts that share words get similar vectors."""

    def get_embedding_dimension(self) -> int:
        return 64

    def encode(self, texts: list[str], **_: object) -> Vector:
        return HashingEmbedder(dimensions=64).embed_chunks(texts)


def test_comparison_waits_longer_than_a_search_for_a_model_to_load(
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
    monkeypatch.setattr(catalog, "CALIBRATION_TIMEOUT_S", 0.1)
    cold = make_services(embedding={"provider": "hashing", "timeout_s": 0.1})
    threading.Timer(1.0, go_on.set).start()
    compared = comparison.compare(cold, OLD, "slow-model")
    assert compared.scores[1].hit_10 == 1
    assert compared.scores[1].embed_ms < 500  # Loading the model is not counted.


@pytest.mark.parametrize("path", ["/nowhere/model", "./nowhere", "~/nowhere/model"])
def test_missing_directory_is_reported(portal: Portal, path: str) -> None:
    with pytest.raises(InvalidInput, match="there is no directory"):
        catalog.register(portal.services, path)
