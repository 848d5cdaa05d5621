"""Fitting the constants of confidence."""

from __future__ import annotations

import numpy as np
import pytest

from eval.fit_confidence import assess, balanced, fit, logistic
from eval.samples import Judged
from portal.embeddings.confidence import FEATURES

NAMES = sorted({name for names in FEATURES.values() for name in names})


def judged(count=400, seed=0):
    """Results whose features tell answers from the rest, with some overlap."""
    rng = np.random.default_rng(seed)
    found = []
    for place in range(count):
        answerable = place % 2 == 0
        level = float(answerable) + rng.normal(scale=0.35)
        features = dict.fromkeys(NAMES, 0.0) | {
            "lead": 3 * level,
            "words": level,
            "coverage": level,
        }
        for rank in range(2):
            behind = rank * 1.5
            found.append(
                Judged(
                    asked="zh" if place % 3 else "en",
                    part="whole",
                    answerable=answerable,
                    features=features | {"behind": behind, "words_behind": behind / 10},
                    relevant=answerable and rank == 0,
                    first=rank == 0,
                    same_language=True,
                )
            )
    return found


def test_logistic_regression_finds_the_line():
    x = np.linspace(-3, 3, 2001)[:, None]
    chance = 1 / (1 + np.exp(-(2 * x[:, 0] - 1)))
    solved = logistic(
        np.vstack([x, x]), np.repeat([1.0, 0.0], len(x)), np.append(chance, 1 - chance)
    )
    assert solved.tolist() == pytest.approx([2, -1], abs=0.02)


def test_groups_and_answerability_weigh_the_same():
    results = judged()
    weights = balanced(results, rest=0.1)
    answerable = np.array([one.answerable for one in results])
    assert weights[answerable].sum() == pytest.approx(0.5)
    chinese = np.array([one.asked == "zh" for one in results])
    assert weights[chinese].sum() == pytest.approx(0.5)


def test_fit_on_some_questions_holds_on_others():
    row = assess(judged(seed=1), "zh", "whole", fit(judged(seed=0)))
    assert row is not None
    assert row.error_first < 0.08
    assert row.relevant_flagged < 0.15
    assert row.off_topic_flagged > 0.85


def test_fit_flags_as_many_right_results_as_it_passes_wrong_ones():
    results = judged(2000)
    row = assess(results, "zh", "whole", fit(results))
    assert row is not None
    assert row.relevant_flagged == pytest.approx(1 - row.off_topic_flagged, abs=0.05)


def test_nothing_to_tell_apart_is_no_row():
    assert assess([one for one in judged() if one.answerable], "zh", "whole", fit(judged())) is None
