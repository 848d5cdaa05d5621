"""Measures of rankings and of calibration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over questions, in percent."""

    ndcg_at_10: float
    hit_at_1: float
    hit_at_5: float
    recall_at_10: float
    questions: int

    def as_dict(self) -> dict[str, float]:
        return {name: round(value, 2) for name, value in asdict(self).items()}


def ndcg(ranking: Sequence[str], relevant: frozenset[str], depth: int = 10) -> float:
    """Return the normalised discounted cumulative gain, with binary relevance."""
    gain = sum(
        1 / math.log2(place + 2) for place, one in enumerate(ranking[:depth]) if one in relevant
    )
    ideal = sum(1 / math.log2(place + 2) for place in range(min(depth, len(relevant))))
    return gain / ideal if ideal else 0.0


def quality(rankings: Iterable[tuple[Sequence[str], frozenset[str]]]) -> Quality:
    """Return the quality of pairs of ranked and relevant document ids, one per question."""
    pairs = list(rankings)
    count = max(1, len(pairs))

    def hit(depth: int) -> float:
        return 100 * sum(bool(relevant & set(found[:depth])) for found, relevant in pairs) / count

    return Quality(
        ndcg_at_10=100 * sum(ndcg(found, relevant) for found, relevant in pairs) / count,
        hit_at_1=hit(1),
        hit_at_5=hit(5),
        recall_at_10=100
        * sum(len(relevant & set(found[:10])) / max(1, len(relevant)) for found, relevant in pairs)
        / count,
        questions=len(pairs),
    )


def calibration_error(
    chances: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    bins: int = 10,
    *,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Return the expected calibration error: the mean distance of stated and observed chance, over
    equal bins, weighted by how many fall into each (Naeini et al., AAAI 2015)."""
    stated, observed = np.asarray(chances, float), np.asarray(outcomes, float)
    weighed = np.ones(len(stated)) if weights is None else np.asarray(weights, float)
    places = np.minimum((stated * bins).astype(int), bins - 1)
    distances = np.bincount(places, weights=weighed * (stated - observed), minlength=bins)
    return float(np.abs(distances).sum() / max(weighed.sum(), 1e-12))


def auroc(higher: npt.ArrayLike, lower: npt.ArrayLike) -> float:
    """Return the chance that a `higher` score exceeds a `lower` one; ties count half."""
    above, below = np.asarray(higher, float), np.sort(np.asarray(lower, float))
    if not len(above) or not len(below):
        return math.nan
    ranks = np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")
    return float(ranks.mean() / (2 * len(below)))
