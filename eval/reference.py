"""The engine's ranking in NumPy, as a reference for the SQL, and to fit calibration with."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from portal.domain.embedding import Vector

Floats = npt.NDArray[np.float64]

# The weights of the default fusion.
VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3


class Bm25:
    """BM25 over analysed terms (Robertson & Zaragoza, 2009), as pg_textsearch scores."""

    def __init__(self, documents: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75):
        lengths = np.array([len(document) for document in documents], float)
        mean = lengths.mean() if len(lengths) else 1.0
        self.size = len(documents)
        self._k1 = k1
        self._norms = k1 * (1 - b + b * lengths / max(mean, 1.0))
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, document in enumerate(documents):
            for term, count in Counter(document).items():
                found[term].append((place, count))
        self._postings = {term: np.array(rows) for term, rows in found.items()}

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document; 0 without a matching term."""
        scores = np.zeros(self.size)
        for term in dict.fromkeys(terms):
            if (rows := self._postings.get(term)) is None:
                continue
            places, counts = rows[:, 0], rows[:, 1]
            weight = math.log(1 + (self.size - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[places] += weight * counts * (self._k1 + 1) / (counts + self._norms[places])
        return scores


def candidates(
    vector_scores: Floats, keyword_scores: Floats, depth: int
) -> tuple[list[int], Floats]:
    """Return the places among the `depth` best of either leg, and the keyword scores, 0 outside the
    best of the keyword leg."""
    by_vector = np.argsort(-vector_scores, kind="stable")[:depth]
    by_words = np.argsort(-keyword_scores, kind="stable")[:depth]
    by_words = by_words[keyword_scores[by_words] > 0]
    seen = np.zeros_like(keyword_scores)
    seen[by_words] = keyword_scores[by_words]
    return sorted({*by_vector.tolist(), *by_words.tolist()}), seen


def text_scores(keyword_scores: Floats, text_floor: float) -> Floats:
    """Scale BM25 to [0, 1]: relative to the best, faded if even the best is below the floor."""
    best = float(keyword_scores.max(initial=0.0))
    if best <= 0:
        return np.zeros_like(keyword_scores)
    faded: float = min(1.0, best / text_floor) ** 2 if text_floor > 0 else 1.0
    return keyword_scores / best * faded


def fuse_reference(
    likeness: Floats,
    keyword_scores: Floats,
    *,
    v_lo: float,
    v_width: float,
    text_floor: float,
    vector_weight: float = VECTOR_WEIGHT,
    text_weight: float = TEXT_WEIGHT,
) -> Floats:
    """Fuse candidates by weight, unclamped: `likeness` is the cosine to the search vector,
    `keyword_scores` is BM25, 0 if the keyword leg did not find the candidate."""
    vector_part = (likeness - v_lo) / v_width
    text_part = text_scores(keyword_scores, text_floor)
    return (vector_weight * vector_part + text_weight * text_part) / (vector_weight + text_weight)


def raw_reference(
    likeness: Floats,
    keyword_scores: Floats,
    *,
    vector_weight: float = VECTOR_WEIGHT,
    text_weight: float = TEXT_WEIGHT,
) -> Floats:
    """Fuse the raw cosine and BM25 relative to the best candidate by weight."""
    text_part = text_scores(keyword_scores, 0.0)
    return (vector_weight * likeness + text_weight * text_part) / (vector_weight + text_weight)


def minmax_reference(
    likeness: Floats,
    keyword_scores: Floats,
    *,
    vector_weight: float = VECTOR_WEIGHT,
    text_weight: float = TEXT_WEIGHT,
) -> Floats:
    """Fuse both by weight after min-max scaling over the candidates."""

    def scaled(scores: Floats) -> Floats:
        width = scores.max() - scores.min()
        return (scores - scores.min()) / width if width > 0 else np.zeros_like(scores)

    fused = vector_weight * scaled(likeness) + text_weight * scaled(keyword_scores)
    return fused / (vector_weight + text_weight)


def rrf_reference(likeness: Floats, keyword_scores: Floats, *, depth: int, k: int = 60) -> Floats:
    """Fuse by reciprocal rank from 1, without ranks beyond `depth` or without a keyword match."""
    fused = np.zeros(len(likeness))
    for scores, floor in ((likeness, -math.inf), (keyword_scores, 0.0)):
        order = [
            place for place in np.argsort(-scores, kind="stable")[:depth] if scores[place] > floor
        ]
        for rank, place in enumerate(order, start=1):
            fused[place] += 1 / (k + rank)
    return fused


def cosines(vectors: Vector, query: Vector) -> Floats:
    found: Floats = np.asarray(vectors, float) @ np.asarray(query, float)
    return found
