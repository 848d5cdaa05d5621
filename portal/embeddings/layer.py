"""The base class of wrappers around an embedding model."""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.embedding import Embedder, FixedLength, Vector
from portal.embeddings.validation import reading


def fix_length(embedder: Embedder, dimensions: int) -> None:
    """Have a model reject vectors of any length but its registered one."""
    if isinstance(embedder, FixedLength):
        embedder.fix_length(dimensions)


class EmbedderLayer:
    """Delegates to the wrapped model what a layer does not override."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def fix_length(self, dimensions: int) -> None:
        fix_length(self._embedder, dimensions)

    def read_answers(
        self,
        question: str,
        statements: Sequence[tuple[str, str]],
        priorities: Sequence[float],
        max_read: int,
        by_nearness: float = 0.0,
    ) -> Vector:
        model = reading(self._embedder)
        return model.read_answers(question, statements, priorities, max_read, by_nearness)
