"""What every re-ranking model offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Reranker(Protocol):
    """Reads a question and a passage together, which ranks better than comparing their vectors
    and costs a run of the model for each passage."""

    @property
    def name(self) -> str:
        """The model, as a person knows it."""

    def load(self) -> None:
        """Get ready to score; nothing when that was done. Raises RerankerUnavailable, with the
        remedy."""

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        """How well each passage answers: higher is better, input order, comparable within this
        call only.

        Gives up about `deadline_s` seconds from now. Raises RerankerUnavailable.
        """
