from __future__ import annotations

import numpy as np
import pytest

from bench.corpus import PreparedQuestions, texts
from bench.corpus.synthesis import Outline, make_ids, outline, write_all
from portal.embeddings.calibration import background
from portal.text.terms.analyser import index_terms, query_terms

SIZE = 600


@pytest.fixture(scope="module")
def plan() -> Outline:
    return outline(SIZE, 7, background.load(PreparedQuestions({})))


def test_the_same_seed_plans_the_same_corpus(plan: Outline) -> None:
    again = outline(SIZE, 7, background.load(PreparedQuestions({})))
    other = outline(SIZE, 8, background.load(PreparedQuestions({})))
    assert np.array_equal(plan.vectors, again.vectors)
    assert np.array_equal(plan.questions, again.questions)
    assert not np.array_equal(plan.vectors, other.vectors)


def test_corpus_has_exactly_the_requested_number_of_chunks(plan: Outline) -> None:
    assert plan.chunk_count == len(plan.vectors) == SIZE
    assert plan.document_of.max() == plan.document_count - 1
    assert 4 < SIZE / plan.document_count < 6


def test_vectors_have_unit_length_and_the_cosines_of_the_real_model(
    plan: Outline,
) -> None:
    assert np.allclose(np.linalg.norm(plan.vectors, axis=1), 1, atol=1e-5)
    of_language = plan.languages[plan.document_of]
    cosines = plan.vectors @ plan.vectors.T
    among = {
        kind: cosines[np.ix_(of_language == kind, of_language == kind)].mean() for kind in (0, 1)
    }
    # multilingual-e5-small: .85 among Chinese chunks, .80 among English ones.
    assert among[0] == pytest.approx(0.85, abs=0.04)
    assert among[1] == pytest.approx(0.80, abs=0.04)


def test_a_question_is_nearer_to_its_chunk_than_to_most(plan: Outline) -> None:
    cosines = plan.questions @ plan.vectors.T
    of_target = cosines[np.arange(len(plan.targets)), plan.targets]
    rank = (cosines > of_target[:, None]).sum(axis=1)
    assert np.median(rank) <= 10


@pytest.mark.slow
def test_texts_do_not_depend_on_how_many_processes_write_them(plan: Outline) -> None:
    blocks = list(write_all(plan, processes=1))
    assert blocks == list(write_all(plan, processes=2))
    chunks = [p for block in blocks for document in block.documents for p in document.chunks]
    assert [chunk.chunk for chunk in chunks] == list(range(SIZE))
    questions = {place: text for block in blocks for place, text in block.questions.items()}
    assert sorted(questions) == list(range(len(plan.targets)))
    assert all(query_terms(text) for text in questions.values())


@pytest.mark.parametrize("language", ["zh", "en"])
def test_terms_are_those_of_the_portals_analyser(language: str) -> None:
    rng = np.random.default_rng(1)
    for topic in range(20):
        title = texts.write_title(rng, topic, language)
        text = f"{title}\n{texts.write(texts.draft(rng, topic, language))}"
        assert texts.terms_of(text, language) == index_terms(text)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_question_shares_words_with_its_chunk(language: str) -> None:
    rng = np.random.default_rng(1)
    chunk = texts.draft(rng, 3, language)
    asked = set(index_terms(texts.write_question(rng, chunk)).split())
    assert asked & set(index_terms(texts.write(chunk)).split())


def test_ids_are_distinct_and_the_same_each_time() -> None:
    assert make_ids(1, 0, 50) == make_ids(1, 0, 50)
    assert len({*make_ids(1, 0, 50), *make_ids(1, 1, 50), *make_ids(2, 0, 50)}) == 150
