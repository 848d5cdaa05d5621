"""Metrics of an embedding model: durations and whether it answers."""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.embedding import Embedder, FixedLength, Vector
from portal.embeddings.validation import reading
from portal.observability import metrics


class MeasuredEmbedder:
    """An embedder whose calls are counted and timed under its provider's name."""

    def __init__(self, embedder: Embedder, provider: str) -> None:
        self._embedder = embedder
        self._provider = provider

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def fix_length(self, dimensions: int) -> None:
        if isinstance(self._embedder, FixedLength):
            self._embedder.fix_length(dimensions)

    def embed_query(self, text: str) -> Vector:
        with metrics.embedding(self._provider, texts=1, is_query=True):
            return self._embedder.embed_query(text)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        with metrics.embedding(self._provider, texts=len(texts), is_query=False):
            return self._embedder.embed_chunks(texts)

    def read_answers(
        self,
        question: str,
        statements: Sequence[tuple[str, str]],
        promise: Sequence[float],
        max_read: int,
        by_nearness: float = 0.0,
    ) -> Vector:
        return reading(self._embedder).read_answers(
            question, statements, promise, max_read, by_nearness
        )
