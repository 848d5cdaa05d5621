"""A model directory that was moved keeps working; another model of the same name is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from portal.domain.embedding import Vector
from portal.domain.search import SearchRequest
from portal.embeddings.providers import sentence_transformers
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import Conflict
from portal.services import Services
from portal.services.models import builds, catalog, switching
from portal.services.search import engine
from tests.conftest import Portal

NAME, DIMENSIONS = "model", 64


class Encoder:
    """A fake sentence-transformers model, identified by its `weights` file."""

    def __init__(self, weights: str) -> None:
        self.weights = weights

    def get_embedding_dimension(self) -> int:
        return DIMENSIONS

    def encode(self, texts: Sequence[str], **_: object) -> Vector:
        marked = [" ".join(f"{self.weights}{word}" for word in text.split()) for text in texts]
        return HashingEmbedder(dimensions=DIMENSIONS).embed_chunks(marked)


@pytest.fixture(autouse=True)
def _weights_of_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(directory: str) -> Encoder:
        return Encoder((Path(directory) / "weights").read_text())

    monkeypatch.setattr(sentence_transformers, "load_model", load)


def directory(tmp_path: Path, parent: str, weights: str) -> Path:
    made = tmp_path / parent / NAME
    made.mkdir(parents=True)
    (made / "weights").write_text(weights)
    return made


@pytest.fixture
def built(portal: Portal, tmp_path: Path) -> Portal:
    """Return a portal that uses the model in ``a/model``."""
    portal.add("Divers must not touch the coral.", name="coral.txt")
    portal.add("The last train leaves at nine.", name="train.txt")
    model = catalog.register(portal.services, str(directory(tmp_path, "a", "one")))
    list(builds.build(portal.services, model.name))
    switching.switch(portal.services, NAME)
    return portal


def path_of(portal: Portal) -> str:
    return str(catalog.find(portal.services, NAME).options["model"])


def test_another_model_in_a_directory_of_the_same_name_is_refused(
    built: Portal, tmp_path: Path
) -> None:
    other = directory(tmp_path, "b", "two")
    with pytest.raises(Conflict, match=r"/a/model.*/b/model gives other vectors"):
        catalog.register(built.services, str(other))
    assert path_of(built) == str(tmp_path / "a" / NAME)


def test_model_whose_directory_moved_continues_working(built: Portal, tmp_path: Path) -> None:
    moved = directory(tmp_path, "b", "one")
    assert catalog.register(built.services, str(moved)).name == NAME
    assert path_of(built) == str(moved)


def test_another_model_in_the_settings_answers_no_question(
    built: Portal, tmp_path: Path, make_services: Callable[..., Services]
) -> None:
    other = directory(tmp_path, "b", "two")
    chosen = {"provider": "sentence-transformers", "model": str(other)}
    services = make_services(embedding=chosen)
    catalog.refresh_registration(services)
    assert path_of(built) == str(tmp_path / "a" / NAME)
    request = SearchRequest("touch the coral", explain=True)
    found = engine.search(services, built.admin, request)
    assert found.degraded == ()
    # Registering the right model meanwhile does not activate the other one.
    catalog.register(services, str(tmp_path / "a" / NAME))
    assert catalog.loaded(services, catalog.find(services, NAME)).embedder is not services.embedder
    expected = engine.search(built.services, built.admin, request)
    assert found.hits[0].vector_score == pytest.approx(expected.hits[0].vector_score)
    # Once the directory contains the right model, it is accepted.
    (other / "weights").write_text("one")
    again = make_services(embedding=chosen)
    catalog.refresh_registration(again)
    assert path_of(built) == str(other)
