from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np

from bench.corpus import Question, best_first
from bench.timing import Contender, Samples, alternate
from bench.truth import recall


def test_best_come_first_and_forbidden_ones_never() -> None:
    scores = np.array([0.1, -np.inf, 0.9, 0.5], np.float32)
    assert best_first(scores, 2).tolist() == [2, 3]
    assert best_first(scores, 9).tolist() == [2, 3, 0]
    assert best_first(np.full(3, -np.inf, np.float32), 2).tolist() == []


def test_recall_is_the_share_of_the_wanted() -> None:
    assert recall([1, 2, 9], [1, 2, 3, 4]) == 0.5
    assert recall([], [1]) == 0
    assert recall([1], []) == 1


def test_the_median_is_over_rounds_so_that_a_disturbed_round_does_not_count() -> None:
    samples = Samples([[0.001, 0.001], [0.001, 0.001], [0.5, 0.5]])
    assert samples.median_ms == 1
    assert samples.as_dict()["searches"] == 6
    assert samples.percentile_ms(100) == 500


def test_contenders_alternate_and_are_prepared_before_every_search() -> None:
    called: list[str] = []
    questions = [cast(Question, SimpleNamespace(text=text)) for text in "ab"]
    contenders = {
        "first": Contender(lambda _question: called.append("first")),
        "second": Contender(
            lambda question: called.append(question.text), before=lambda: called.append("before")
        ),
    }
    samples = alternate(contenders, questions, seconds=0)
    assert {name: len(one.rounds) for name, one in samples.items()} == {"first": 3, "second": 3}
    measured = called[2:]  # Each was run once without being timed.
    assert measured[:5] == ["first"] * 5
    assert measured[5:9] == ["before", "a", "before", "b"]
