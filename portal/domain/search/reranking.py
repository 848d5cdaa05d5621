"""The port of re-ranking models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Reranker(Protocol):
    """Reads a query and a chunk together, which ranks better than comparing vectors and costs a run
    of the model for each chunk."""

    @property
    def name(self) -> str:
        """Return the model's name for users."""

    def load(self) -> None:
        """Prepare to score. Raises RerankerUnavailable, with the remedy."""

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        """Return the relevance of each chunk: higher is better, in input order, comparable within
        this call only. Gives up about `deadline_s` seconds from now. Raises RerankerUnavailable."""
