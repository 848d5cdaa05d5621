"""Query vectors shared between processes."""

from __future__ import annotations

import hashlib

import numpy as np

from portal.domain.caching import SharedCache
from portal.domain.embedding import Vector
from portal.settings import EmbeddingSettings

_LIFE_S = 24 * 3600
# Settings that do not change vectors.
_IRRELEVANT = {"api_key", "timeout_s", "threads", "batch_size", "max_retries"}
_MAX_ERROR = 1e-3


class SharedVectors:
    """The query vectors of one model in a shared cache, as float32.

    All settings that change vectors are part of the key, so that two models, prefixes or lengths
    never mix. The texts themselves are not in the cache.
    """

    def __init__(self, cache: SharedCache, settings: EmbeddingSettings, name: str) -> None:
        self._cache = cache
        model = settings.model_dump_json(exclude=_IRRELEVANT) + name
        self._model = hashlib.sha256(model.encode()).hexdigest()

    def get(self, text: str) -> Vector | None:
        """Return the vector of a query, (dimensions,); None if it is missing or incomplete."""
        kept = self._cache.get(self._key(text))
        if not kept or len(kept) % np.dtype(np.float32).itemsize:
            return None
        vector: Vector = np.frombuffer(kept, dtype="<f4").astype(np.float32)
        length = float(np.linalg.norm(vector))
        return vector if abs(length - 1.0) < _MAX_ERROR else None

    def put(self, text: str, vector: Vector) -> None:
        self._cache.put(self._key(text), vector.astype("<f4").tobytes(), ttl_s=_LIFE_S)

    def _key(self, text: str) -> str:
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return f"question:{self._model}:{digest}"
