"""What every embedding model offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of unit length, so that a dot product is the cosine."""

    @property
    def name(self) -> str:
        """What the model is registered under; vectors of two names never mix."""

    @property
    def dimensions(self) -> int:
        """Length of each vector."""

    def embed_query(self, text: str) -> Vector:
        """Embed a question: (dimensions,) float32, unit length. Raises EmbedderUnavailable."""

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        """Embed passages: (len(texts), dimensions) float32, unit length, input order.

        Raises EmbedderUnavailable.
        """
