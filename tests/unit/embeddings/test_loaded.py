"""Models besides the configured one: created once, limited in number, and waited for only by
callers that need them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from portal.domain.embedding import Vector
from portal.embeddings import loaded
from portal.embeddings.loaded import LoadedModels
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from portal.settings import EmbeddingSettings


def settings(dimensions: int = 64, **more: object) -> EmbeddingSettings:
    return EmbeddingSettings(provider="hashing", dimensions=dimensions, **more)


def test_the_same_settings_give_the_same_model(tmp_path: Path) -> None:
    models = LoadedModels()
    first = models.get(settings(), tmp_path)
    assert models.get(settings(), tmp_path) is first
    assert first.embedder.name == "hashing-64"
    assert first.calibration.ready
    assert models.get(settings(96), tmp_path).embedder.dimensions == 96


def test_memory_is_bounded(tmp_path: Path) -> None:
    models = LoadedModels(max_models=2)
    first = models.get(settings(8), tmp_path)
    for dimensions in (16, 24):
        models.get(settings(dimensions), tmp_path)
    assert models.get(settings(8), tmp_path) is not first


def test_model_that_does_not_exist_is_refused_each_time_with_the_remedy(tmp_path: Path) -> None:
    models = LoadedModels()
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="no bundled model"):
            models.get(EmbeddingSettings(provider="bundled", model="nothing"), tmp_path)


def test_threads_that_want_one_model_share_it_and_others_do_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, made, go_on = LoadedModels(), [], threading.Event()

    def create(wanted: EmbeddingSettings, *_: object) -> HashingEmbedder:
        made.append(wanted.dimensions)
        if wanted.dimensions == 64:
            assert go_on.wait(10)
        return HashingEmbedder(dimensions=wanted.dimensions or 8)

    monkeypatch.setattr(loaded, "create_embedder", create)
    got: list[object] = []
    threads = [
        threading.Thread(target=lambda: got.append(models.get(settings(64), tmp_path)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert models.get(settings(96), tmp_path).embedder.dimensions == 96
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(set(map(id, got))) == 1
    assert sorted(made) == [64, 96]


class Slow(HashingEmbedder):
    """Waits for `gate` before embedding a background."""

    gate = threading.Event()

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        assert self.gate.wait(20)
        return super().embed_chunks(texts)


def test_query_does_not_wait_for_calibration_even_behind_a_waiting_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slow, "gate", threading.Event())
    monkeypatch.setattr(loaded, "create_embedder", lambda *_: Slow(dimensions=64))
    models, got = LoadedModels(), []
    patient = threading.Thread(target=lambda: got.append(models.get(settings(), tmp_path)))
    patient.start()
    started = time.monotonic()
    urgent = models.get(settings(), tmp_path, timeout_s=0)
    assert time.monotonic() - started < 10
    assert len(urgent.embedder.embed_query("overtime pay")) == 64
    assert not urgent.calibration.ready
    assert not got
    Slow.gate.set()
    patient.join(20)
    assert got == [urgent]
    assert urgent.calibration.ready
