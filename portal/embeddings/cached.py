"""A bounded cache of query vectors, because users page, refine and reload."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cachetools import LRUCache

from portal.domain.embedding import Embedder, Vector
from portal.domain.health import HealthSample
from portal.embeddings.layer import EmbedderLayer
from portal.embeddings.shared import SharedVectors
from portal.embeddings.validation import require_shape
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.observability import metrics

MAX_QUERIES = 2048  # About 3 MB at 384 dimensions.
_PROBE_QUERY = "?"


class CachedQueries(EmbedderLayer):
    """An embedder with a cache of recent query vectors.

    With `shared`, it also has the vectors of other processes. It counts and times the calls of the
    model under its provider's name, and records whether the last one succeeded. Thread-safe.
    """

    def __init__(
        self,
        embedder: Embedder,
        provider: str,
        *,
        max_queries: int = MAX_QUERIES,
        shared: SharedVectors | None = None,
    ) -> None:
        super().__init__(embedder)
        self._provider = provider
        self._shared = shared
        self._vectors: LRUCache[str, Vector] = LRUCache(maxsize=max_queries)
        self._lock = threading.Lock()
        self._health: HealthSample | None = None
        self._length: int | None = None

    @property
    def health(self) -> HealthSample | None:
        """Return whether the model gave usable vectors at the last call, and when.

        None if it was not called yet. Cache hits do not count.
        """
        return self._health

    def probe(self) -> None:
        """Probe the model itself, bypassing the cache.

        Raises EmbedderUnavailable, InvalidEmbedding.
        """
        self._embed(_PROBE_QUERY)

    def fix_length(self, dimensions: int) -> None:
        """Accept only vectors of the model's registered length.

        An endpoint may serve another model under the same name. Cheap if the length is set already.
        """
        if self._length == dimensions:
            return
        self._length = dimensions
        super().fix_length(dimensions)

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            vector = self._fitting(self._vectors.get(text))
        if vector is None and self._shared is not None:
            vector = self._cache(text, self._fitting(self._shared.get(text)))
        metrics.cache_asked("query_embeddings", hit=vector is not None)
        return self._embed(text) if vector is None else vector

    def _embed(self, text: str) -> Vector:
        # The lock is not held while the model works: two threads may embed the same query, but no
        # query waits for another one.
        with self._recording_health():
            with metrics.embedding(self._provider, texts=1, is_query=True):
                vector = self._embedder.embed_query(text)
            self._require_length(vector.reshape(1, -1), count=1)
        if self._shared is not None:
            self._shared.put(text, vector)
        self._cache(text, vector)
        return vector

    def _cache(self, text: str, vector: Vector | None) -> Vector | None:
        if vector is not None:
            vector.setflags(write=False)  # All later callers get this very array.
            with self._lock:
                self._vectors[text] = vector
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        with self._recording_health():
            with metrics.embedding(self._provider, texts=len(texts), is_query=False):
                vectors = self._embedder.embed_chunks(texts)
            if len(texts):
                self._require_length(vectors, count=len(texts))
            return vectors

    def _fitting(self, vector: Vector | None) -> Vector | None:
        """Return the vector, or None if it was cached with another length before that was set."""
        is_other = vector is not None and self._length not in {None, len(vector)}
        return None if is_other else vector

    def _require_length(self, vectors: Vector, *, count: int) -> None:
        if self._length is not None:
            require_shape(vectors.shape, dimensions=self._length, count=count, of=self.name)

    @contextmanager
    def _recording_health(self) -> Iterator[None]:
        try:
            yield
        except (EmbedderUnavailable, InvalidEmbedding):
            self._health = HealthSample(ok=False)
            raise
        self._health = HealthSample(ok=True)
