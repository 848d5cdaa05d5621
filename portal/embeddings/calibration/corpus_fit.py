"""Confidence constants from the stored chunks, for a model without fitted ones.

The background questions are so general that hardly any has an answer among the stored chunks. How
far their best results still stand out differs from model to model; this is converted to the scale
of the model whose constants are used. Keyword evidence does not depend on the model and is kept.
Nothing has to be embedded for this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from portal.domain.embedding import Vector
from portal.domain.search import NEAREST_COMPARED
from portal.embeddings.calibration import Calibration
from portal.embeddings.calibration.confidence import Evidence

# Nine tenths of the first results of background questions lead by less than this, with the model
# whose constants are used: 1.8 to 2.4 on five corpora of 240 to 1,000 chunks.
_SHARE = 0.9
_USUAL_LEAD = 2.05
# Factors outside this range say more about the chunks than about the model.
_FACTORS = (0.4, 2.5)
MIN_CHUNKS = 50


def fit(
    calibration: Calibration, vectors: Vector, languages: Sequence[str]
) -> dict[str, Any] | None:
    """Return constants as JSON for `Calibration.adopt`; None if there are too few chunks.

    Takes vectors (n, dim) of stored chunks and their languages.
    """
    if len(vectors) < MIN_CHUNKS:
        return None
    leads = [
        _best_lead(calibration, vectors, languages, question)
        for question in calibration.background_questions()
    ]
    reached = float(np.quantile(leads, _SHARE)) if leads else 0.0
    if reached <= 0:
        return None
    factor = float(np.clip(_USUAL_LEAD / reached, *_FACTORS))
    return {"lead": {"factor": round(factor, 4), "shift": 0.0}, "passages": len(vectors)}


def _best_lead(
    calibration: Calibration,
    vectors: Vector,
    languages: Sequence[str],
    question: tuple[str, Vector],
) -> float:
    """Return how far the nearest chunk stands out for a question."""
    text, vector = question
    statistics = calibration.query_statistics(vector, text)
    likeness = vectors @ statistics.search_vector
    order = np.argsort(-likeness)[:NEAREST_COMPARED]
    first = int(order[0])
    evidence = Evidence(first, languages[first], corrected=float(likeness[first]))
    found = calibration.features(statistics, [evidence], 1.0, likeness[order].tolist())
    return found[0]["lead"]
