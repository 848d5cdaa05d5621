"""A deterministic substitute for a model: texts are near when they share terms.

Each analysed term is hashed to two places of the vector with a sign each (feature hashing,
Weinberger et al., ICML 2009), so that the dot product estimates the overlap of terms. It has no
notion of meaning, needs no model, and gives the same vector in every process.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from portal.domain.embedding import Vector
from portal.embeddings.validation import validated
from portal.text.terms.analyser import index_terms, query_terms

DEFAULT_DIMENSIONS = 384
_PLACES_PER_TERM = 2


class HashingEmbedder:
    """Vectors of hashed terms; for tests and demonstrations."""

    def __init__(self, *, name: str | None = None, dimensions: int = DEFAULT_DIMENSIONS) -> None:
        self._name = name or f"hashing-{dimensions}"
        self._dimensions = dimensions

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._unit([self._vector(query_terms(text))])[0]
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return self._unit([self._vector(index_terms(text).split()) for text in texts])

    def _unit(self, vectors: list[Vector]) -> Vector:
        return validated(vectors, dimensions=self._dimensions, count=len(vectors))

    def _vector(self, terms: Iterable[str]) -> Vector:
        vector = np.zeros(self._dimensions, dtype=np.float32)
        for term, count in Counter(terms).items():
            self._add(vector, term, 1 + math.log(count))
        if not vector.any():
            # A text without terms (or whose terms cancel out) still needs a direction.
            self._add(vector, "", 1.0)
        return vector

    def _add(self, vector: Vector, term: str, weight: float) -> None:
        # blake2b and not hash(): Python salts its own hash in every process.
        digest = hashlib.blake2b(term.encode(), digest_size=8 * _PLACES_PER_TERM).digest()
        for start in range(0, len(digest), 8):
            number = int.from_bytes(digest[start : start + 8], "big")
            vector[(number >> 1) % self._dimensions] += weight if number & 1 else -weight
