"""Fitting the constants of confidence."""

from __future__ import annotations

import numpy as np
import pytest

from eval.fitting.confidence import (
    CUTS,
    SAME_LANGUAGE,
    assess,
    balanced,
    fit,
    weighted_quantile,
    with_constant,
)
from eval.samples import Judged
from portal.embeddings.calibration.confidence import ACROSS, FEATURES

NAMES = sorted({name for names in FEATURES.values() for name in names})


def judged(count=400, seed=0, *, same_language=True):
    """Return results whose features separate answers from the rest, with some overlap."""
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
                    same_language=same_language,
                )
            )
    return found


def test_logistic_regression_finds_the_line():
    x = np.linspace(-3, 3, 2001)[:, None]
    chance = 1 / (1 + np.exp(-(2 * x[:, 0] - 1)))
    solved = with_constant(
        np.vstack([x, x]), np.repeat([1.0, 0.0], len(x)), np.append(chance, 1 - chance)
    )
    assert solved.tolist() == pytest.approx([2, -1], abs=0.02)


def test_groups_and_answerability_weigh_the_same():
    results = judged()
    weights = balanced(results, rest=0.1)
    answerable = np.array([result.answerable for result in results])
    assert weights[answerable].sum() == pytest.approx(0.5)
    chinese = np.array([result.asked == "zh" for result in results])
    assert weights[chinese].sum() == pytest.approx(0.5)


def test_fit_generalises_to_other_questions():
    row = assess(judged(2000, seed=1), "zh", "whole", fit(judged(2000)))
    assert row is not None
    assert row.error_first < 0.08
    assert row.relevant_flagged < 0.15
    assert row.off_topic_flagged > 0.85


@pytest.mark.parametrize("same_language", [True, False], ids=["one language", "across"])
def test_fit_flags_the_required_share_of_questions_without_an_answer(same_language):
    results = judged(2000, same_language=same_language)
    # Results of the other kind are there as well, and must not move the cut.
    others = judged(2000, seed=1, same_language=not same_language)
    row = assess(results, "zh", "whole", fit([*results, *others]))
    assert row is not None
    flagged = (SAME_LANGUAGE if same_language else CUTS[ACROSS]).flagged
    assert row.off_topic_flagged == pytest.approx(flagged, abs=0.015)


def test_fit_to_one_language_still_judges_results_in_another():
    row = assess(judged(seed=1, same_language=False), "zh", "whole", fit(judged(seed=0)))
    assert row is not None
    assert row.off_topic_flagged > 0.85


def test_weighted_quantile_counts_weights():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 8.0])
    assert weighted_quantile(values, weights, 0.05) == 1
    assert weighted_quantile(values, weights, 0.5) == 2
    assert weighted_quantile(values, weights, 1.0) == 3


def test_results_without_unanswerable_questions_give_no_row():
    assert assess([one for one in judged() if one.answerable], "zh", "whole", fit(judged())) is None
