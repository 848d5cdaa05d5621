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
class HeldToLength(Protocol):
    """A model whose vectors must have the registered length."""

    def hold_to(self, dimensions: int) -> None:
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
        """Embed a question: (dimensions,) float32, unit length. Raises EmbedderUnavailable."""

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        """Embed chunks: (len(texts), dimensions) float32, unit length, input order.

        Raises EmbedderUnavailable.
        """


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of a text: `vectors`, (tokens, dimensions) float32 of unit length after the mean
    of all texts is subtracted, and their ranges in the text."""

    spans: tuple[tuple[int, int], ...]
    vectors: Vector


@runtime_checkable
class TokenEmbedder(Protocol):
    """A model that returns vectors of single tokens in their context."""

    def embed_tokens(self, texts: Sequence[str], *, is_question: bool) -> list[TokenVectors]:
        """Embed texts token by token, in input order. Raises EmbedderUnavailable, also if the model
        has only vectors of whole texts."""
