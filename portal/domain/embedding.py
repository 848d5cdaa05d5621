"""What every embedding model offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Which model made the vectors that are kept under `name`, and how it is loaded again.

    `options` are the provider's own: ``model`` (its name or directory there), ``dimensions`` (as
    asked of it), ``api_base``. They hold no secret, for they are stored.
    """

    provider: str
    name: str
    dimensions: int
    options: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class HeldToLength(Protocol):
    """A model whose vectors must have the length that it is registered with."""

    def hold_to(self, dimensions: int) -> None:
        """Refuse vectors of any other length from now on, as InvalidEmbedding."""


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
        """Embed a question: (dimensions,) float32, unit length. Raises EmbedderUnavailable."""

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        """Embed chunks: (len(texts), dimensions) float32, unit length, input order.

        Raises EmbedderUnavailable.
        """
