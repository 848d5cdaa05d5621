"""Calibration of a model's cosines: the corrected search vector, the scale of scores, confidence.

Two faults of embedding models are corrected in the question's vector; stored data stays the same:

- *Hubs.* Some chunks are near every question. Subtracting half of the mean question removes
  what all questions share, and with it most of what makes those chunks near.
- *Languages.* A Chinese question is nearer to any Chinese chunk than to the English one that
  answers it. Removing the direction from English to Chinese from the question ends that: in a
  corpus of both languages nDCG@10 across languages rises from .02 to .77.

The measurements are in docs/retrieval-quality.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from portal.domain.embedding import Embedder, Vector
from portal.domain.search import NEAREST_COMPARED
from portal.embeddings.calibration import background as backgrounds
from portal.embeddings.calibration.background import Background
from portal.embeddings.calibration.confidence import (
    MAX_WITHOUT_CODE,
    ConfidenceModels,
    Evidence,
    LeadScale,
    Source,
    field_level,
    keyword_features,
    lead_features,
    load_models,
)
from portal.errors import EmbedderUnavailable
from portal.text.language import detect_question_language

HUB_SHARE = 0.5
# The vector part of a fused score grows by one over this many background deviations.
WIDTH_IN_DEVIATIONS = 15.0
# Below this share of the max keyword score of a question, the text leg's part of the fused score
# fades with the square: accidental word matches must not outrank a good answer in another language
# or in other words.
TEXT_FLOOR = 0.45

_MIN_NORM = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class QueryStatistics:
    """How a question relates to the background.

    `vector` is the plain question, `search_vector` the corrected one, both of unit length; a
    chunk's cosine x to the latter becomes the vector part of the fused score as (x - v_lo) /
    v_width. `rivals` are the best corrected cosines of the background.
    """

    language: str
    vector: Vector
    search_vector: Vector
    v_lo: float
    v_width: float
    rivals: tuple[float, ...]


class Calibration:
    """Constants of one embedding model.

    Without a background nothing is corrected, and confidence uses keywords only.
    """

    def __init__(self, *, background: Background | None, models: ConfidenceModels) -> None:
        self._background = background
        self._models = models
        if background is None:
            return
        self._pooled = np.vstack([background.chunks[name] for name in backgrounds.LANGUAGES])
        self._hubs = {
            name: HUB_SHARE * vectors.mean(axis=0) for name, vectors in background.questions.items()
        }
        self._hubs["other"] = np.mean(list(self._hubs.values()), axis=0)
        axis = background.chunks["zh"].mean(axis=0) - background.chunks["en"].mean(axis=0)
        norm = float(np.linalg.norm(axis))
        self._axis: Vector = axis / norm if norm > _MIN_NORM else np.zeros_like(axis)
        self._width = WIDTH_IN_DEVIATIONS * self._typical_deviation(background)
        self._deviations = self._deviations_by_language(background)

    @classmethod
    def for_model(cls, embedder: Embedder, cache_dir: Path | None = None) -> Calibration:
        """Return the calibration of a model.

        Its background is shipped, cached in `cache_dir`, or embedded now. When the model does not
        answer, the result is neutral (`ready` is False) and the caller should retry later.
        """
        try:
            background: Background | None = backgrounds.load(embedder, cache_dir)
        except EmbedderUnavailable:
            background = None
        return cls(background=background, models=load_models(embedder.name))

    @property
    def ready(self) -> bool:
        """Return whether the model's background is known."""
        return self._background is not None

    def _fits_length(self, dimensions: int) -> bool:
        """Return whether the background has vectors of this length.

        The endpoint may have returned another length when the background was embedded.
        """
        return self._background is not None and len(self._axis) == dimensions

    @property
    def language_axis(self) -> Vector | None:
        """Return the direction from English to Chinese (dim,), of unit length.

        None if it is not known, or if the model does not separate the languages.
        """
        return self._axis if self._background is not None and self._axis.any() else None

    @property
    def source(self) -> Source:
        """Return where the constants of confidence come from."""
        return self._models.source

    def background_questions(self) -> list[tuple[str, Vector]]:
        """Return general questions with their vectors; none without a background."""
        if self._background is None:
            return []
        return [
            (text, vector)
            for name, vectors in self._background.questions.items()
            for text, vector in zip(backgrounds.texts(name, "questions"), vectors, strict=True)
        ]

    def adopt(self, constants: Mapping[str, Any] | None) -> None:
        """Use the constants that `corpus_fit` computed from the stored chunks.

        Constants fitted for this very model take precedence. Cheap if they are in use already.
        """
        if not constants or self.fitted:
            return
        scale = LeadScale.stored(constants)
        if scale != self._models.scale:
            self._models = replace(self._models, scale=scale, source="corpus")

    @property
    def fitted(self) -> bool:
        """Return whether the constants were fitted for this very model, on question sets."""
        return self.source == "fitted"

    @staticmethod
    def text_scale(terms: int, chunks: int) -> float:
        """Return the approximate BM25 score of a chunk that holds all `terms` of a question.

        `chunks` is the size of the corpus; a rough count is enough, since its logarithm is used.
        """
        return max(1, terms) * math.log(2 * max(0, chunks) + 2)

    @staticmethod
    def text_floor(terms: int, chunks: int) -> float:
        """Return the BM25 score of the best chunk from which the text leg counts in full."""
        return TEXT_FLOOR * Calibration.text_scale(terms, chunks)

    def query_statistics(self, query_vector: Vector, query: str) -> QueryStatistics:
        """Return statistics of a question's vector (unit length); one product with 128 vectors."""
        language = detect_question_language(query)
        if not self._fits_length(len(query_vector)):
            return uncorrected(query_vector, query)
        corrected = self._corrected(query_vector, language)
        norm = float(np.linalg.norm(corrected))
        if norm < _MIN_NORM:  # A question that consists only of what all questions share.
            corrected, norm = query_vector, 1.0
        search_vector = cast(Vector, (corrected / norm).astype(np.float32))
        against = self._pooled @ search_vector
        return QueryStatistics(
            language=language,
            vector=query_vector,
            search_vector=search_vector,
            v_lo=float(against.mean()),
            v_width=self._width / norm,
            rivals=tuple(float(value) for value in np.sort(against)[::-1][:NEAREST_COMPARED]),
        )

    def features(
        self,
        statistics: QueryStatistics | None,
        evidence: Sequence[Evidence],
        text_scale: float,
        nearest: Sequence[float] | None = None,
        others: Sequence[Evidence] = (),
    ) -> list[dict[str, float]]:
        """Return the features of each chunk of `evidence`, which `others` compete with.

        `nearest` are the corrected cosines of the `NEAREST_COMPARED` chunks nearest to the
        question, by default among `evidence` and `others`. `statistics` is None if the question has
        no vector.
        """
        found = keyword_features(evidence, text_scale, others)
        # Without rivals the question was measured before the background was known.
        if statistics is None or not statistics.rivals or self._background is None:
            return found
        if nearest is None:
            every = (*evidence, *others)
            nearest = [item.corrected for item in every if item.corrected is not None]
        level = field_level(nearest, statistics.rivals)
        leads = lead_features(evidence, level, self._deviations, others)
        return [words | lead for words, lead in zip(found, leads, strict=True)]

    def confidences(
        self,
        statistics: QueryStatistics | None,
        evidence: Sequence[Evidence],
        text_scale: float,
        nearest: Sequence[float] | None = None,
        others: Sequence[Evidence] = (),
    ) -> list[float]:
        """Return the probability of each chunk; see `features`."""
        language = statistics.language if statistics else None
        features = self.features(statistics, evidence, text_scale, nearest, others)
        chances = [
            self._models.confidence(one_features, same_language=language in {None, one.language})
            for one, one_features in zip(evidence, features, strict=True)
        ]
        return [
            min(chance, MAX_WITHOUT_CODE) if one.lacks_code else chance
            for one, chance in zip(evidence, chances, strict=True)
        ]

    def _corrected(self, query_vector: Vector, language: str) -> Vector:
        corrected = query_vector - self._hubs[language]
        return cast(Vector, corrected - (corrected @ self._axis) * self._axis)

    def _typical_deviation(self, background: Background) -> float:
        spreads = [
            (self._pooled @ self._corrected(question, language)).std()
            for language, questions in background.questions.items()
            for question in questions
        ]
        return max(float(np.mean(spreads)), _MIN_NORM)

    def _deviations_by_language(self, background: Background) -> dict[str, float]:
        """Return the standard spread of corrected cosines to unrelated chunks, by language."""
        questions = np.vstack(
            [
                self._corrected(question, language)
                for language, questions in background.questions.items()
                for question in questions
            ]
        )
        questions /= np.maximum(np.linalg.norm(questions, axis=1, keepdims=True), _MIN_NORM)
        found = {
            name: max(float((chunks @ questions.T).std(axis=0).mean()), _MIN_NORM)
            for name, chunks in background.chunks.items()
        }
        return found | {"other": float(np.mean(list(found.values())))}


def uncorrected(query_vector: Vector, query: str) -> QueryStatistics:
    """Return statistics of a vector (unit length) without a background: it stays unchanged."""
    return QueryStatistics(
        language=detect_question_language(query),
        vector=query_vector,
        search_vector=query_vector,
        v_lo=0.0,
        v_width=1.0,
        rivals=(),
    )
