"""Fusion of both legs of a search into one order.

It is used by the portal's own search, programs' collections and `semantic_search` over any backend.
A fusion gives each offer two parts, one per leg, whose sum is its score: a page shows exactly what
was added up. A new fusion is one function and one entry in `FUSIONS`. docs/retrieval-quality.md has
the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from math import inf, nextafter
from typing import NamedTuple

from portal.domain.search import NO_PARTS, Fusion, Normalisation, Parts, Weights

RRF_K = 60  # Cormack, Clarke and Büttcher, SIGIR 2009.

# The weight of adjacent words as a share of the keyword weight, which translated words get in full,
# and how many of the best chunks are compared, whatever the limit (docs/retrieval-quality.md).
PROXIMITY = 2 / 3
MAX_COMPARED_BY_PROXIMITY = 20

# However large `domain_boost` is, a chunk never passes a better one whose merit is higher by more
# than this share of it: such chunks are not near-equals.
_NEAR_EQUAL = 0.1
# Places that a preferred chunk may gain, so that the first results do not depend on how many more
# were fetched.
MAX_PLACES_GAINED = 10


class Offer(NamedTuple):
    """A chunk found by a leg, with its rank in each leg from 1, None if that leg did not find it.
    `cosine` is to the query, `likeness` to the corrected query; None without a vector. `bm25` is 0
    if the keyword leg did not find it."""

    id: str
    vector_rank: int | None = None
    text_rank: int | None = None
    cosine: float | None = None
    likeness: float | None = None
    bm25: float = 0.0


class Ranked(NamedTuple):
    """An offer with its place in the order: `parts` add up to its score."""

    offer: Offer
    parts: Parts

    @property
    def score(self) -> float:
        return self.parts.score


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of a query's scores: likeness counts from `low`, in units of `width`; words fade if
    the best BM25 is below `text_floor`, since they then match by accident."""

    low: float = 0.0
    width: float = 1.0
    text_floor: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranking:
    """The parameters of a fusion. `as_shown` adds up cosine and relative BM25, the scores shown to
    programs, without any correction."""

    fusion: Fusion = Fusion.WEIGHTED
    normalisation: Normalisation = Normalisation.CALIBRATED
    weights: Weights = field(default_factory=Weights)
    rrf_k: int = RRF_K
    as_shown: bool = False


Measure = Callable[[Sequence[Offer], Scale], list[float]]
# What each leg adds to the score of each offer: (vector, text). Plain tuples, because a search
# makes hundreds and shows ten.
LegParts = list[tuple[float, float]]
PartsOf = Callable[[Sequence[Offer], Ranking, Scale], LegParts]


# --- scores of the legs ---------------------------------------------------------------------------


def cosines(offers: Sequence[Offer], _scale: Scale = Scale()) -> list[float]:
    return [0.0 if one.cosine is None else one.cosine for one in offers]


def relative_bm25(offers: Sequence[Offer], _scale: Scale = Scale()) -> list[float]:
    """Return BM25 as a share of the best, in [0, 1] like a cosine."""
    best = max([one.bm25 for one in offers], default=0.0) or 1.0
    return [one.bm25 / best for one in offers]


def calibrated_likeness(offers: Sequence[Offer], scale: Scale) -> list[float]:
    """Return likeness relative to what unrelated text reaches for this query; at most 1."""
    low, width = scale.low, scale.width
    return [min(1.0, ((one.likeness or 0.0) - low) / width) for one in offers]


def faded_bm25(offers: Sequence[Offer], scale: Scale) -> list[float]:
    """Return relative BM25, reduced if even the best matches little of the query, as in a query
    across languages."""
    fade = fading(offers, scale)
    return [fade * share for share in relative_bm25(offers)]


def fading(offers: Iterable[Offer], scale: Scale) -> float:
    """Return how much words count, in [0, 1], depending on how well the best match fits."""
    best = max([one.bm25 for one in offers], default=0.0)
    return min(1.0, best / scale.text_floor) ** 2 if scale.text_floor else 1.0


def _likeness(offers: Sequence[Offer], _scale: Scale) -> list[float]:
    return [one.likeness or 0.0 for one in offers]


def _bm25(offers: Sequence[Offer], _scale: Scale) -> list[float]:
    return [one.bm25 for one in offers]


def _minmax(measure: Measure) -> Measure:
    """Scale a measure to its range among the offers; 0 where all are the same."""

    def spread(offers: Sequence[Offer], scale: Scale) -> list[float]:
        values = measure(offers, scale)
        low, width = min(values), (max(values) - min(values)) or 1.0
        return [(value - low) / width for value in values]

    return spread


# --- fusions --------------------------------------------------------------------------------------


def _add_weighted(vector: Measure, text: Measure) -> PartsOf:
    """Add up two measures, each times its weight."""

    def parts_of(offers: Sequence[Offer], ranking: Ranking, scale: Scale) -> LegParts:
        weights = ranking.weights
        return [
            (weights.vector * by_meaning, weights.text * by_words)
            for by_meaning, by_words in zip(vector(offers, scale), text(offers, scale), strict=True)
        ]

    return parts_of


def _by_ranks(offers: Sequence[Offer], ranking: Ranking, _scale: Scale) -> LegParts:
    """Add up reciprocal ranks: scores of two kinds need no common scale."""

    def part(rank: int | None) -> float:
        return 0.0 if rank is None else 1 / (ranking.rrf_k + rank)

    return [(part(one.vector_rank), part(one.text_rank)) for one in offers]


# Ranks have no scale to normalise: every normalisation of them is the same.
FUSIONS: dict[tuple[Fusion, Normalisation], PartsOf] = {
    (Fusion.WEIGHTED, Normalisation.RAW): _add_weighted(_likeness, relative_bm25),
    (Fusion.WEIGHTED, Normalisation.MINMAX): _add_weighted(_minmax(_likeness), _minmax(_bm25)),
    (Fusion.WEIGHTED, Normalisation.CALIBRATED): _add_weighted(calibrated_likeness, faded_bm25),
    **{(Fusion.RRF, normalisation): _by_ranks for normalisation in Normalisation},
}
_AS_SHOWN = _add_weighted(cosines, relative_bm25)


def fuse(
    offers: Sequence[Offer], ranking: Ranking, scale: Scale = Scale(), limit: int | None = None
) -> list[Ranked]:
    """Order the offers of two legs, best first; ties by cosine, then by id. Return at most `limit`,
    if given."""
    if not offers:
        return []
    if ranking.as_shown and ranking.fusion is Fusion.WEIGHTED:
        return _in_order(offers, _AS_SHOWN(offers, ranking, scale), limit, is_floored=False)
    parts_of = FUSIONS[ranking.fusion, ranking.normalisation]
    return _in_order(offers, parts_of(offers, ranking, scale), limit)


def order_by_vector(
    offers: Sequence[Offer], scale: Scale, limit: int | None = None, *, is_corrected: bool
) -> list[Ranked]:
    """Order by cosine, or by likeness if the query was corrected."""
    values = calibrated_likeness(offers, scale) if is_corrected else cosines(offers)
    return _in_order(offers, [(value, 0.0) for value in values], limit)


def order_by_words(offers: Sequence[Offer], limit: int | None = None) -> list[Ranked]:
    """Order by BM25 as a share of the best: the best scores 1."""
    return _in_order(offers, [(0.0, value) for value in relative_bm25(offers)], limit)


def _in_order(
    offers: Sequence[Offer], parts: LegParts, limit: int | None, *, is_floored: bool = True
) -> list[Ranked]:
    """Sort by score. A chunk less like the query than unrelated text loses score; with `is_floored`
    a score never falls below 0."""
    # Plain tuples sort fast: each search sorts some hundred offers.
    keys = [
        (-(vector + text), 2.0 if one.cosine is None else -one.cosine, one.id, place)
        for place, (one, (vector, text)) in enumerate(zip(offers, parts, strict=True))
    ]
    return [
        Ranked(offers[place], NO_PARTS if is_floored and lost > 0 else Parts(*parts[place]))
        for lost, _cosine, _id, place in sorted(keys)[:limit]
    ]


# --- adjacent and translated words ----------------------------------------------------


def add_proximity(
    ranked: Sequence[Ranked], shares: Sequence[float], ranking: Ranking
) -> list[Ranked]:
    """Return the order with a bonus for adjacent and translated words: `shares`, in [0, 1], are
    those of the first chunks. Scores remain in [0, 1]."""
    text = ranking.weights.text
    scaled = 1 / (1 + PROXIMITY * text)
    compared = []
    for (offer, parts), share in zip(ranked, chain(shares, repeat(0.0)), strict=False):
        vector, words = scaled * parts.vector, scaled * parts.text
        # A chunk that neither leg supports gets no bonus.
        added = scaled * text * share if parts.score > 0 else 0.0
        missing = max(0.0, 1 - vector - words)
        compared.append(Ranked(offer, Parts(vector, words, proximity=min(added, missing))))
    return sorted(compared, key=lambda one: -one.score)


# --- the domain that a user prefers ---------------------------------------------------------------


def merits(offers: Sequence[Offer], ranking: Ranking, scale: Scale) -> dict[str, float]:
    """Return the merit of each chunk by id, for comparing chunks when a domain is preferred. It is
    the same in every fusion, since ranks of an answer and an unrelated chunk may differ by one."""
    compared = replace(ranking, weights=ranking.weights.as_shares())
    parts = FUSIONS[Fusion.WEIGHTED, Normalisation.CALIBRATED](offers, compared, scale)
    return {one.id: sum(its) for one, its in zip(offers, parts, strict=True)}


def prefer(
    ranked: Sequence[Ranked], preferred: Container[str], merits: Mapping[str, float], boost: float
) -> list[Ranked]:
    """Return the order after preferred chunks have passed their near-equals. A preferred chunk
    passes those above it that are better by at most `boost` and by at most a tenth of their own
    merit. The score that it gains is its part `domain`."""
    order: list[Ranked] = []
    for one in ranked:
        order.append(one)
        if one.offer.id not in preferred:
            continue
        merit = merits[one.offer.id]
        for at in range(len(order) - 1, max(0, len(order) - 1 - MAX_PLACES_GAINED), -1):
            above = order[at - 1].offer.id
            allowed = min(boost, _NEAR_EQUAL * merits[above])
            if above in preferred or merits[above] - merit > allowed:
                break
            order[at - 1], order[at] = one, order[at - 1]
    below = 0.0
    for place in reversed(range(len(order))):
        order[place] = _raise_to_minimum(order[place], below)
        below = max(below, order[place].score)
    return order


def _raise_to_minimum(one: Ranked, min_score: float) -> Ranked:
    """Add what is missing to reach `min_score`."""
    missing = min_score - one.score
    while one.score < min_score:
        one = one._replace(parts=one.parts._replace(domain=missing))
        missing = nextafter(missing, inf)  # A sum may fall short by its last digit.
    return one
