"""A bounded memory of questions, because people page, refine and reload."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cachetools import LRUCache

from portal.domain.embedding import Embedder, Vector
from portal.errors import EmbedderUnavailable, InvalidEmbedding

MAX_QUERIES = 2048  # About 3 MB at 384 dimensions.


class CachedQueries:
    """An embedder that remembers the vectors of recent questions, and whether the model answered
    when it was last asked. Safe for threads."""

    def __init__(self, embedder: Embedder, *, max_queries: int = MAX_QUERIES) -> None:
        self._embedder = embedder
        self._vectors: LRUCache[str, Vector] = LRUCache(maxsize=max_queries)
        self._lock = threading.Lock()
        self._has_failed = False

    @property
    def has_failed(self) -> bool:
        """Whether the model gave no usable vector when it was last asked for one."""
        return self._has_failed

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            known = self._vectors.get(text)
        if known is not None:
            return known
        # The lock is not held while the model works: two threads may embed the same question,
        # but no question waits for another one.
        with self._noting():
            vector = self._embedder.embed_query(text)
        vector.setflags(write=False)  # Everyone who asks again gets this very array.
        with self._lock:
            self._vectors[text] = vector
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        with self._noting():
            return self._embedder.embed_passages(texts)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except (EmbedderUnavailable, InvalidEmbedding):
            self._has_failed = True
            raise
        self._has_failed = False


def has_failed(embedder: Embedder) -> bool:
    """Whether the model gave no usable vector when this process last asked it for one."""
    return isinstance(embedder, CachedQueries) and embedder.has_failed
