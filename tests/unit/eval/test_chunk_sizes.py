"""The figures by which chunk sizes are compared."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from eval.cached_embedder import CachedEmbedder
from eval.chunk_sizes import Corpus, Piece, corpus_of, cut, measure
from eval.sets import Chunk, Question, QuestionSet
from portal.embeddings import create_embedder
from portal.embeddings.calibration import Calibration
from portal.settings import EmbeddingSettings
from portal.text.counting.tokens import token_weight

SUBJECTS = ("comets", "bridges", "bakers", "rivers", "clocks", "foxes")


def chunk(subject: str) -> Chunk:
    text = " ".join(f"Sentence {n} tells of the {subject} in the valley." for n in range(12))
    return Chunk(id=subject, title=subject, text=text)


def one_set() -> QuestionSet:
    questions = (Question("q", "What is told of the comets?", frozenset({"comets"})),)
    return QuestionSet("one", tuple(map(chunk, SUBJECTS)), questions)


def test_each_chunk_is_once_in_the_corpus_at_its_place() -> None:
    corpus = corpus_of(one_set())
    assert corpus == corpus_of(one_set())
    assert sorted(corpus.places) == sorted(SUBJECTS)
    for place in corpus.places.values():
        assert corpus.texts[place.document][place.start : place.end] == place.text


@pytest.mark.parametrize("overlap", [0.0, 0.2])
def test_chunks_are_as_long_as_wanted_and_repeat_whole_sentences(overlap: float) -> None:
    corpus = Corpus([" ".join(chunk(one).text for one in SUBJECTS)], {})
    chunks = cut(corpus, 100, overlap)
    for before, after in pairwise(chunks):
        repeated = max(0, before.end - after.start)
        assert token_weight(after.text[:repeated]) <= 20
        assert bool(repeated) is bool(overlap)
        assert after.text.startswith("Sentence")
    assert max(token_weight(chunk.text) for chunk in chunks) <= 1.3 * 100


def test_figures_report_what_was_found_and_how_much_of_it(tmp_path: Path) -> None:
    model = create_embedder(EmbeddingSettings(provider="hashing"))
    embedder = CachedEmbedder(model, tmp_path / "cache")
    calibration = Calibration.for_model(embedder)
    figures = measure(one_set(), embedder, calibration, 300, 0.0)
    assert (figures.size, figures.overlap) == (300, 0)
    assert figures.hit_at_1 == figures.hit_at_5 == figures.ndcg_at_10 == 100
    assert figures.found_in_5 > 99  # The spaces between two chunks are in neither.
    small = measure(one_set(), embedder, calibration, 20, 0.0)
    assert small.chunks > figures.chunks
    assert small.found_in_5 < 100


def test_chunks_of_different_documents_share_nothing() -> None:
    one, other = Piece(0, 0, 10, "x" * 10), Piece(1, 0, 10, "x" * 10)
    assert (one.shared(other), one.shared(Piece(0, 4, 20, ""))) == (0, 6)
