"""The chance that a passage answers the question, from evidence that fusion does not decide.

Three small logistic models, by what there is to go on: both legs, meaning alone, words alone.
Their features are in units of the question's own background, so that they carry over from one
language and one corpus to another; `eval/fit_confidence.py` fits the constants and reports how
well they hold on sets that they were not fitted on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Rivals that a result is compared with: the mean of this many best ones, and the best.
RIVALS = 9

CONSTANTS = Path(__file__).parent / "constants.json"

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What search found out about one passage. `corrected` is the cosine to the search vector,
    `keyword` the BM25 score; None where that leg did not run, 0 where it did not find it.
    Passages of one `document` are no rivals of each other.
    """

    document: Hashable
    language: str
    cosine: float | None = None
    corrected: float | None = None
    keyword: float | None = None


@dataclass(frozen=True, slots=True)
class Weighing:
    """A fitted logistic model: the weight of each feature, and the constant."""

    weights: dict[str, float]
    constant: float

    def chance(self, features: Features) -> float:
        total = self.constant + sum(w * features[name] for name, w in self.weights.items())
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


@dataclass(frozen=True, slots=True)
class Weighings:
    """One model a kind of evidence. `fitted` is False where they were borrowed from another
    embedding model."""

    both: Weighing
    vector: Weighing
    text: Weighing
    fitted: bool

    def confidence(self, features: Features, *, same_language: bool = True) -> float:
        """Chance in [0, 1] that a passage with these features is relevant."""
        if "meaning" not in features:
            return self.text.chance(features) if "words" in features else 0.0
        if "words" not in features:
            return self.vector.chance(features)
        both = self.both.chance(features)
        # Across languages shared words are rare, so their absence says nothing; a code or a name
        # that both have still counts.
        return both if same_language else max(both, self.vector.chance(features))


def keyword_features(evidence: Sequence[Evidence], text_scale: float) -> list[dict[str, float]]:
    """`words`: root of the BM25 score in units of `text_scale`; `words_lead`: over the best rival
    in the same units."""
    found: list[dict[str, float]] = []
    for one in evidence:
        if one.keyword is None:
            found.append({})
            continue
        rivals = [e.keyword for e in evidence if e.document != one.document and e.keyword]
        words = max(0.0, one.keyword) / text_scale
        lead = words - max(rivals, default=0.0) / text_scale
        found.append({"words": math.sqrt(words), "words_lead": lead})
    return found


def lead_features(
    evidence: Sequence[Evidence], background: Sequence[float], deviation: float
) -> list[dict[str, float]]:
    """`lead`: corrected cosine over the mean of the best rivals; `lead_best`: over the best one;
    in deviations of the background, whose passages are rivals too, so that both mean something
    from the first document on."""
    found: list[dict[str, float]] = []
    for one in evidence:
        if one.corrected is None:
            found.append({})
            continue
        others = [
            e.corrected for e in evidence if e.document != one.document and e.corrected is not None
        ]
        rivals = sorted([*others, *background], reverse=True)[:RIVALS]
        lead, lead_best = one.corrected - float(np.mean(rivals)), one.corrected - rivals[0]
        found.append({"lead": lead / deviation, "lead_best": lead_best / deviation})
    return found


def load_weighings(model: str) -> Weighings:
    """The constants fitted for a model; those of the bundled one, marked so, where it has none."""
    fitted: dict[str, Any] = json.loads(CONSTANTS.read_text(encoding="utf-8"))["models"]
    constants = fitted.get(model) or next(iter(fitted.values()))
    parts = {
        kind: Weighing(
            weights=dict(constants[kind]["weights"]), constant=constants[kind]["constant"]
        )
        for kind in ("both", "vector", "text")
    }
    return Weighings(**parts, fitted=model in fitted)
