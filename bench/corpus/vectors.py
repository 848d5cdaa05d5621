"""Synthetic vectors with the shape of multilingual-e5's: a large part that all texts of a
language share, topics, and few directions in which texts really differ.

The shared parts and the directions are those of the background that comes with the portal, so that
the correction of a query's vector (`portal.embeddings.calibration`) works as it does on real
vectors. For an index they are as hard as real ones: clusters, and cosines that span little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from portal.domain.embedding import Vector
from portal.embeddings.calibration.background import LANGUAGES, Background

LATENT_DIMENSIONS = 28
# Shares of a chunk's own variance: its topic, its document, itself. They sum to one.
_TOPIC, _DOCUMENT, _CHUNK = 0.45, 0.30, 0.25
# Length of the part that is not shared, as measured on the background (mean cosine .80 to .85).
_OWN_LENGTH = 0.45
_NOISE_SHARE = 0.1
# Correlation of a question with its chunk: gives relevant pairs .08 to .1 more than random ones.
_QUESTION_CORRELATION = 0.7

Latent = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Where a model places texts: `shared` by kind and language (dim,), `directions` (28, dim)."""

    shared: dict[tuple[str, str], Vector]
    directions: npt.NDArray[np.float64]
    topics: Latent

    @classmethod
    def like(cls, background: Background, *, topic_count: int) -> Space:
        """Return the space of a model, estimated from its background."""
        shared: dict[tuple[str, str], Vector] = {}
        for language in LANGUAGES:
            shared["passage", language] = background.chunks[language].mean(axis=0)
            shared["question", language] = background.questions[language].mean(axis=0)
        own = np.vstack([p - p.mean(axis=0) for p in background.chunks.values()])
        _, spread, rows = np.linalg.svd(own.astype(np.float64), full_matrices=False)
        weights = spread[:LATENT_DIMENSIONS] / np.linalg.norm(spread[:LATENT_DIMENSIONS])
        rng = np.random.default_rng(4)
        return cls(
            shared=shared,
            directions=weights[:, None] * rows[:LATENT_DIMENSIONS],
            topics=rng.normal(size=(topic_count, LATENT_DIMENSIONS)),
        )

    def chunks(
        self, rng: np.random.Generator, topics: npt.NDArray[np.int64], of_document: Latent
    ) -> Latent:
        """Return latent places (n, 28) of chunks, by their topic and their document's own part."""
        own = rng.normal(size=(len(topics), LATENT_DIMENSIONS))
        place: Latent = (
            np.sqrt(_TOPIC) * self.topics[topics]
            + np.sqrt(_DOCUMENT) * of_document
            + np.sqrt(_CHUNK) * own
        )
        return place

    def questions(self, rng: np.random.Generator, places: Latent) -> Latent:
        """Return latent places (n, 28) of questions that chunks at `places` answer."""
        other = rng.normal(size=places.shape)
        share = _QUESTION_CORRELATION
        asked: Latent = share * places + np.sqrt(1 - share**2) * other
        return asked

    def embed(
        self, rng: np.random.Generator, kind: str, languages: list[str], places: Latent
    ) -> Vector:
        """Return unit vectors, (n, dim) float32; `kind` is ``passage`` or ``question``."""
        dimensions = self.directions.shape[1]
        noise = rng.normal(size=(len(places), dimensions)) / np.sqrt(dimensions)
        own = np.sqrt(1 - _NOISE_SHARE) * places @ self.directions + np.sqrt(_NOISE_SHARE) * noise
        vectors = np.stack([self.shared[kind, name] for name in languages]) + _OWN_LENGTH * own
        unit: Vector = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit
