"""The probability that a chunk answers the question, independent of the fused score.

Small logistic models, chosen by the available evidence: keywords and vectors, vectors alone,
keywords alone, and vectors if question and chunk are in different languages. Their features are in
units that carry over from one language and one corpus to another; `eval/fitting/confidence.py` fits
the constants and reports how well they generalise.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from portal.domain.search import NEAREST_COMPARED
from portal.text.terms.proximity import terms_in

# What a result is compared with: the mean of these ranks, from 1, among the chunks nearest to the
# question and the background. The first ranks are left out, because chunks on the same subject as a
# right answer are near too; with the background the mean is meaningful even for a single chunk.
FIELD_RANKS = (11, NEAREST_COMPARED)

# The models and the features each needs, best model first. The last two are for chunks in another
# language than the question, with and without a dictionary of the two.
TRANSLATED, ACROSS = "translated", "across"
FEATURES: dict[str, tuple[str, ...]] = {
    "both": ("lead", "behind", "words", "coverage"),
    "covered": ("lead", "behind", "coverage"),
    "vector": ("lead", "behind"),
    "text": ("words", "coverage", "words_behind"),
    "coverage": ("coverage",),
    TRANSLATED: ("lead", "behind", "translated"),
    ACROSS: ("lead", "behind"),
}

# Max confidence of a chunk without the code that the question names.
MAX_WITHOUT_CODE = 0.3
# As `portal.text.terms.analyser` writes codes: a letter first, then digits, parts joined by zz.
_JOINT = "zz"
# "The 70s" and "the 10th" are not codes; a negative number or an emoji begins with zz.
_CODE = re.compile(r"(?!zz[mu][0-9])[^\W\d_][^\W_]*[0-9][^\W_]*")
_NUMBER = re.compile(r"[0-9]+(?:zz[0-9]+)*")

CONSTANTS = Path(__file__).parent / "constants.json"

Features = Mapping[str, float]
# Fitted on question sets for this very model, fitted on the stored chunks, or borrowed from another
# model.
Source = Literal["fitted", "corpus", "borrowed"]


class Evidence(NamedTuple):
    """The search evidence about one chunk.

    `corrected` is the cosine to the search vector, `keyword` the BM25 score, 0 if that leg did not
    find the chunk, `coverage` the share of the question's words that the chunk has, `translated`
    the share that a chunk in another language has in translation; None means unknown. `lacks_code`
    is true if the question names a code that the chunk does not have. Chunks of one `document` do
    not compete with each other.
    """

    document: Hashable
    language: str
    corrected: float | None = None
    keyword: float | None = None
    coverage: float | None = None
    translated: float | None = None
    lacks_code: bool = False


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A fitted logistic model: the weight of each feature, and the constant."""

    weights: dict[str, float]
    constant: float

    def chance(self, features: Features) -> float:
        total = self.constant + sum(w * features[name] for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


@dataclass(frozen=True, slots=True)
class LeadScale:
    """A conversion of a model's leads to the scale of the model whose constants are used."""

    factor: float = 1.0
    shift: float = 0.0

    @classmethod
    def stored(cls, constants: Mapping[str, Any]) -> LeadScale:
        """Load the scale as stored by `corpus_fit`."""
        lead = constants["lead"]
        return cls(factor=float(lead["factor"]), shift=float(lead["shift"]))

    def applied(self, features: Features) -> Features:
        if "lead" not in features:
            return features
        lead, behind = features["lead"], features["behind"]
        return {
            **features,
            "lead": lead * self.factor + self.shift,
            "behind": behind * self.factor,
        }


@dataclass(frozen=True, slots=True)
class ConfidenceModels:
    """The models of `FEATURES`, and the source of their constants."""

    models: Mapping[str, LogisticModel]
    source: Source
    scale: LeadScale = LeadScale()

    def confidence(self, features: Features, *, same_language: bool = True) -> float:
        """Return the probability in [0, 1] that a chunk is relevant; 0 without features."""
        features = self.scale.applied(features)
        if same_language or "lead" not in features:
            return self._chance(features)
        across = self.models[TRANSLATED if "translated" in features else ACROSS].chance(features)
        # Across languages shared words are rare, so their absence is not evidence; a shared code or
        # name still counts.
        has_words = "coverage" in features
        return max(across, self._chance(features)) if has_words else across

    def _chance(self, features: Features) -> float:
        for kind, names in FEATURES.items():
            if all(name in features for name in names):
                return self.models[kind].chance(features)
        return 0.0


def coverage(terms: tuple[str, ...], chunk_terms: str) -> float:
    """Return the share of a question's terms that occur in a chunk, given as it is indexed."""
    if not terms:
        return 0.0
    return len(terms_in(terms, chunk_terms)) / len(terms)


def lacks_code(terms: tuple[str, ...], chunk_terms: str) -> bool:
    """Return whether a question names codes and a chunk has none of them, not even by number.

    Codes are, for example, `PO-4711`, `v0.8`, `B12`; the chunk is given as it is indexed. In all
    other ways, chunks with neighbouring codes of a list are similar.
    """
    codes = _codes(terms)
    padded = f" {chunk_terms} "
    return bool(codes) and not any(f" {piece} " in padded for piece in codes)


@lru_cache(maxsize=256)
def _codes(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes that a question names, and their numbers."""
    codes = [term for term in terms if _CODE.fullmatch(term)]
    parts = {part for code in codes if _JOINT in code for part in code.split(_JOINT)}
    return tuple(
        piece
        for code in codes
        if code not in parts
        for piece in (code, max(_NUMBER.findall(code), key=len))
    )


def keyword_features(
    evidence: Sequence[Evidence], text_scale: float, others: Sequence[Evidence] = ()
) -> list[dict[str, float]]:
    """Return the keyword features of each chunk of `evidence`, among `others`.

    `words`: square root of the BM25 score in units of `text_scale`; `words_behind`: how far the
    best other document is ahead, in the same units; `coverage` and `translated`, if known.
    """
    found: list[dict[str, float]] = []
    best = _best_others([(item.document, item.keyword) for item in (*evidence, *others)])
    for item in evidence:
        shares = {"coverage": item.coverage, "translated": item.translated}
        features = {name: share for name, share in shares.items() if share is not None}
        if item.keyword is not None:
            features["words"] = math.sqrt(max(0.0, item.keyword) / text_scale)
            features["words_behind"] = max(0.0, best[item.document] - item.keyword) / text_scale
        found.append(features)
    return found


def lead_features(
    evidence: Sequence[Evidence],
    level: float,
    deviations: Mapping[str, float],
    others: Sequence[Evidence] = (),
) -> list[dict[str, float]]:
    """Return the vector features of each chunk of `evidence`, among `others`.

    `lead`: corrected cosine above `level`, which chunks near this question reach anyway; `behind`:
    how far the best other document is ahead. Both in deviations of unrelated text in the chunk's
    language.
    """
    found: list[dict[str, float]] = []
    best = _best_others([(item.document, item.corrected) for item in (*evidence, *others)])
    for item in evidence:
        if item.corrected is None:
            found.append({})
            continue
        deviation = deviations.get(item.language, deviations["other"])
        found.append(
            {
                "lead": (item.corrected - level) / deviation,
                "behind": max(0.0, best[item.document] - item.corrected) / deviation,
            }
        )
    return found


def field_level(nearest: Sequence[float], background: Sequence[float]) -> float:
    """Return the corrected cosine that a question reaches without an answer: see `FIELD_RANKS`.

    `nearest` are the cosines of the chunks nearest to the question, `background` the best ones of
    the background; in any order.
    """
    pool = np.sort(np.concatenate([nearest, background]))[::-1]
    first, last = FIELD_RANKS
    return float(pool[first - 1 : last].mean()) if len(pool) >= first else float(pool.min())


def load_models(model: str) -> ConfidenceModels:
    """Load the constants fitted for a model, else those of the bundled one, marked as borrowed."""
    fitted: dict[str, Any] = json.loads(CONSTANTS.read_text(encoding="utf-8"))["models"]
    constants = fitted.get(model) or next(iter(fitted.values()))
    return ConfidenceModels(
        models={
            kind: LogisticModel(dict(constants[kind]["weights"]), constants[kind]["constant"])
            for kind in FEATURES
        },
        source="fitted" if model in fitted else "borrowed",
    )


def _best_others(scored: Sequence[tuple[Hashable, float | None]]) -> dict[Hashable, float]:
    """Return for each document the best value of the others; minus infinity without one."""
    best: dict[Hashable, float] = {}
    for document, value in scored:
        if value is not None:
            best[document] = max(value, best.get(document, -math.inf))
    first, second = (*heapq.nlargest(2, best.values()), -math.inf, -math.inf)[:2]
    # The document that has the best value is compared with the second best.
    return {document: second if best.get(document) == first else first for document, _ in scored}
