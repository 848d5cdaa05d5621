"""The port of embedding models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """How to load the model of the vectors stored under `name`.

    `options` are the provider's: ``model`` (its name or directory there), ``dimensions`` (as
    requested), ``api_base``. They are stored, so they hold no secret.
    """

    provider: str
    name: str
    dimensions: int
    options: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class FixedLength(Protocol):
    """A model whose vectors must have the registered length."""

    def fix_length(self, dimensions: int) -> None:
        """Reject vectors of any other length from now on, with InvalidEmbedding."""


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of unit length, so that a dot product is the cosine."""

    @property
    def name(self) -> str:
        """Return the name that the model is registered under; vectors of two names never mix."""

    @property
    def dimensions(self) -> int:
        """Return the length of each vector."""

    def embed_query(self, text: str) -> Vector:
        """Embed a query: (dimensions,) float32, unit length. Raises EmbedderUnavailable."""

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        """Embed chunks: (len(texts), dimensions) float32, unit length, input order. Raises
        EmbedderUnavailable."""


@runtime_checkable
class StatementReader(Protocol):
    """A model that reads a question together with statements."""

    def read_answers(
        self,
        question: str,
        statements: Sequence[tuple[str, str]],
        priorities: Sequence[float],
        max_read: int,
        by_nearness: float = 0.0,
    ) -> Vector:
        """Return the log odds that each statement answers the question: (len(statements),) float32.

        A statement is its context (title, headings) and its text. Only the `max_read` nearest to
        the question are read, by cosine plus their `priorities`; the others get NaN. `by_nearness`
        times the cosine is added to the log odds. Raises EmbedderUnavailable, also if the model
        only makes vectors.
        """
