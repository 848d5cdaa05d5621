"""The reference for fusion and the measures, against which the engine is tested."""

from __future__ import annotations

import numpy as np
import pytest

from eval.measures import auroc, calibration_error, ndcg, quality
from eval.reference import Bm25, candidates, fuse_reference, rrf_reference, text_scores


def test_bm25_matches_the_formula_by_hand():
    scores = Bm25([["a", "b"], ["b", "b"]]).scores(["a"])
    assert scores.tolist() == pytest.approx([np.log(2) * 2.2 / (1 + 1.2), 0])


def test_weak_text_scores_fade_with_the_square():
    full, faded = (text_scores(np.array([4.0, 2.0, 0.0]), floor) for floor in (4.0, 8.0))
    assert full.tolist() == [1, 0.5, 0]
    assert faded.tolist() == [0.25, 0.125, 0]


def test_no_floor_means_no_fading():
    assert text_scores(np.array([0.1, 0.05]), 0).tolist() == [1, 0.5]


def test_no_match_does_not_divide_by_zero():
    assert text_scores(np.zeros(3), 5).tolist() == [0, 0, 0]


def test_weights_are_shares_of_their_sum():
    likeness, words = np.array([0.5, 0.4]), np.array([0.0, 3.0])
    scale = {"v_lo": 0.3, "v_width": 0.4, "text_floor": 3.0}
    one = fuse_reference(likeness, words, **scale, vector_weight=0.7, text_weight=0.3)
    ten = fuse_reference(likeness, words, **scale, vector_weight=7, text_weight=3)
    assert one.tolist() == pytest.approx(ten.tolist())
    assert one.tolist() == pytest.approx([0.35, 0.475])


def test_rrf_counts_ranks_from_one_and_skips_what_a_leg_did_not_find():
    fused = rrf_reference(np.array([0.9, 0.8]), np.array([0.0, 2.0]), depth=10)
    assert fused.tolist() == pytest.approx([1 / 61, 1 / 62 + 1 / 61])


def test_candidates_are_the_best_of_either_leg():
    places, seen = candidates(np.array([3.0, 2.0, 1.0]), np.array([0.0, 0.5, 2.0]), 1)
    assert places == [0, 2]
    assert seen.tolist() == [0, 0, 2]


def test_ndcg_of_the_second_place():
    assert ndcg(["x", "y"], frozenset({"y"})) == pytest.approx(1 / np.log2(3))


def test_quality_is_the_mean_over_questions():
    found = quality([(["a"], frozenset({"a"})), (["b", "a"], frozenset({"z"}))])
    assert (found.ndcg_at_10, found.hit_at_1, found.hit_at_5) == (50, 50, 50)


def test_accurate_chances_have_no_calibration_error():
    assert calibration_error([0.25] * 4, [1, 0, 0, 0]) == pytest.approx(0)
    assert calibration_error([0.95] * 4, [0, 0, 0, 0]) == pytest.approx(0.95)


def test_weights_change_what_calibration_error_counts():
    assert calibration_error([0.95, 0.05], [0, 0], weights=[0, 1]) == pytest.approx(0.05)


def test_auroc_counts_pairs_in_order_and_ties_half():
    assert auroc([3.0, 2.0], [1.0, 2.0]) == pytest.approx(3.5 / 4)
