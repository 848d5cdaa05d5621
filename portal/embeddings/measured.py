"""Metrics of an embedding model: durations and whether it answers."""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.embedding import Embedder, Vector
from portal.embeddings.layer import EmbedderLayer
from portal.observability import metrics


class MeasuredEmbedder(EmbedderLayer):
    """An embedder whose calls are counted and timed under its provider's name."""

    def __init__(self, embedder: Embedder, provider: str) -> None:
        super().__init__(embedder)
        self._provider = provider

    def embed_query(self, text: str) -> Vector:
        with metrics.embedding(self._provider, texts=1, is_query=True):
            return self._embedder.embed_query(text)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        with metrics.embedding(self._provider, texts=len(texts), is_query=False):
            return self._embedder.embed_chunks(texts)
