"""Measuring answers by quotation."""

from __future__ import annotations

import numpy as np
import pytest

from eval.answers import Outcome, corpora, first_cited, report
from eval.fit_answers import _features, fit, shares
from eval.sets import Chunk, QuestionSet
from portal.answering.quoting.relevance import judge
from portal.answering.writing.scripted import ScriptedChatModel
from portal.domain.answering import Abstained
from tests.unit.answering.sources import source

SOURCES = [source(1), source(2), source(3)]


@pytest.mark.parametrize(
    ("script", "number"),
    [(["Both [3", "] and [1]."], 3), ([Abstained("Nothing.")], 0), (["No marker [9]."], 0)],
)
def test_first_source_that_is_cited_counts(script, number):
    assert first_cited(ScriptedChatModel(script), "Why?", "en", SOURCES)[0] == number


class Rows:
    def chunks_of(self, _name):
        return np.arange(1)


def test_titles_are_indexed_as_the_engine_does():
    chunk = Chunk(id="p", title="Annual leave", text="Fifteen days.")
    (corpus,) = corpora(Rows(), [QuestionSet("one", (chunk,), ())])
    assert {"annual", "fifteen"} <= set(corpus.terms[0])


def test_evidence_of_the_best_statement_is_fitted():
    (judged,) = judge("How many days of leave?", "en", [source(1, "Leave lasts 15 days.")])
    assert _features(judged) == judged.candidates[0].evidence.values


def test_report_counts_abstaining_as_no_right_answer():
    found = [
        Outcome(0, True, 7, True, 0.01),
        Outcome(1, True, 8, False, 0.01),
        Outcome(2, True, None, False, 0.01),
        Outcome(3, True, None, False, 0.01),
        Outcome(4, False, None, False, 0.01),
        Outcome(5, False, 7, False, 0.01),
        Outcome(6, False, None, False, 0.01, is_foreign=False),
    ]
    columns = [list(column.cells) for column in report({"mini": found}).columns]
    assert columns == [["mini"], ["25.0"], ["50.0"], ["50.0"], ["100.0"], ["10.0"]]


def made(answerable, *best):
    features = np.array([(0.0, value, value - 0.2, 1.0) for value in best])
    right = np.zeros(len(best))
    if answerable:
        right[int(np.argmax(best))] = 1
    return answerable, features, right, True


def test_fit_tells_answers_from_their_absence():
    choose = np.random.default_rng(3)
    there = [
        made(True, *choose.uniform(0.5, 0.9, 1), *choose.uniform(0, 0.3, 4)) for _ in range(50)
    ]
    gone = [made(False, *choose.uniform(0, 0.3, 5)) for _ in range(50)]
    weights = fit([[*there, *gone]])
    assert shares([*there, *gone], weights) == (1.0, 1.0)
