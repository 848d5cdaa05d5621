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


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of a text: `vectors`, (tokens, dimensions) float32 of unit length after the mean
    of all texts is taken off, and where in the text each stands."""

    spans: tuple[tuple[int, int], ...]
    vectors: Vector


@runtime_checkable
class TokenEmbedder(Protocol):
    """A model that shows the vectors of single tokens, each read in its context."""

    def embed_tokens(self, texts: Sequence[str], *, is_question: bool) -> list[TokenVectors]:
        """Embed texts token by token, in input order. Raises EmbedderUnavailable, also when the
        model has only vectors of whole texts."""
