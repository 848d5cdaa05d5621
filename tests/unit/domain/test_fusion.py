"""Fusion matches the NumPy reference, and its parts add up to the score."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from eval.reference import fuse_reference, minmax_reference, raw_reference, rrf_reference
from portal.domain.search import Fusion, Normalisation
from portal.domain.search.fusion import (
    MAX_PLACES_GAINED,
    Offer,
    Ranking,
    Scale,
    add_proximity,
    fuse,
    order_by_words,
    prefer,
)

LIKENESS = np.array([0.83, 0.80, 0.78, 0.70, 0.52])
BM25 = np.array([0.0, 4.0, 9.0, 0.0, 1.5])
SCALE = Scale(low=0.41, width=0.5, text_floor=12.0)
RRF = Ranking(Fusion.RRF)
WEIGHTS = {"vector_weight": 0.7, "text_weight": 0.3}
REFERENCES = {
    Normalisation.RAW: lambda likeness, bm25: raw_reference(likeness, bm25, **WEIGHTS),
    Normalisation.MINMAX: lambda likeness, bm25: minmax_reference(likeness, bm25, **WEIGHTS),
    Normalisation.CALIBRATED: lambda likeness, bm25: np.clip(
        fuse_reference(likeness, bm25, v_lo=0.41, v_width=0.5, text_floor=12.0, **WEIGHTS), 0, None
    ),
}


def ranks(scores: np.ndarray) -> list[int | None]:
    order = np.argsort(-scores, kind="stable").tolist()
    return [order.index(place) + 1 if scores[place] > 0 else None for place in range(len(scores))]


def offers(likeness: np.ndarray, bm25: np.ndarray) -> list[Offer]:
    columns = (range(len(bm25)), ranks(likeness), ranks(bm25), likeness.tolist(), bm25.tolist())
    return [
        Offer(str(place), vector_rank, text_rank, near, near, words)
        for place, vector_rank, text_rank, near, words in zip(*columns, strict=True)
    ]


@pytest.mark.parametrize("bm25", [BM25, np.zeros(5)], ids=["words", "no words"])
@pytest.mark.parametrize(("fusion", "normalisation"), list(product(Fusion, Normalisation)))
def test_fusion_is_that_of_the_reference_and_its_parts_add_up(
    fusion: Fusion, normalisation: Normalisation, bm25: np.ndarray
) -> None:
    if fusion is Fusion.RRF:
        expected = rrf_reference(LIKENESS, bm25, depth=len(bm25))
    else:
        expected = REFERENCES[normalisation](LIKENESS, bm25)
    found = fuse(offers(LIKENESS, bm25), Ranking(fusion, normalisation), SCALE)
    scores = {int(one.offer.id): one.parts.vector + one.parts.text for one in found}
    assert [scores[place] for place in range(5)] == pytest.approx(expected.tolist())
    assert [one.score for one in found] == sorted(scores.values(), reverse=True)


def test_best_chunk_by_words_scores_1() -> None:
    few = [Offer("a", bm25=7.0), Offer("b", bm25=3.5)]
    for some in (few, [*few, Offer("c", bm25=0.2)]):
        assert [word.score for word in order_by_words(some)][:2] == [1.0, 0.5]


def preferred(merits: list[float], wanted: set[int], boost: float = 0.05) -> list[int]:
    """Return places in the order of RRF, which ignores `merits`, after preferring `wanted`."""
    places = range(len(merits))
    ranked = fuse([Offer(str(place), vector_rank=place + 1) for place in places], RRF)
    by_id = {str(place): merit for place, merit in enumerate(merits)}
    found = prefer(ranked, {str(place) for place in wanted}, by_id, boost)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert all(one.parts.domain == 0 or int(one.offer.id) in wanted for one in found)
    return [int(one.offer.id) for one in found]


def test_preferred_chunk_passes_only_equals_and_near_equals() -> None:
    assert preferred([0.5, 0.5], {1}) == [1, 0]
    assert preferred([0.53, 0.5], {1}) == [1, 0]
    assert preferred([0.53, 0.5], {1}, boost=0.02) == [0, 1]
    # The boost is capped at a tenth of the chunk's own score.
    assert preferred([0.9, 0.5], {1}, boost=0.5) == [0, 1]
    assert preferred([0.9, 0.5, 0.49], {2}) == [0, 2, 1]


def test_preferred_chunks_keep_their_order_and_gain_few_places() -> None:
    assert preferred([0.51, 0.505, 0.5], {1, 2}) == [1, 2, 0]
    many = [0.5] * (MAX_PLACES_GAINED + 5)
    order = preferred(many, {len(many) - 1})
    assert order.index(len(many) - 1) == len(many) - 1 - MAX_PLACES_GAINED


def test_proximity_decides_between_near_equals() -> None:
    found = offers(LIKENESS, BM25)
    ranked = fuse(found, Ranking(), SCALE)
    first, second = (one.offer.id for one in ranked[:2])
    nearer = add_proximity(ranked, [0.2, 1.0], Ranking())
    assert [one.offer.id for one in nearer[:2]] == [second, first]
    same = add_proximity(ranked, [0.0, 0.0], Ranking())
    assert [one.offer.id for one in same] == [one.offer.id for one in ranked]


def test_proximity_keeps_scores_within_one() -> None:
    perfect = fuse(offers(np.array([2.0, 0.1]), np.array([9.0, 1.0])), Ranking(), SCALE)
    assert all(0 <= one.score <= 1 for one in add_proximity(perfect, [1.0, 1.0], Ranking()))
