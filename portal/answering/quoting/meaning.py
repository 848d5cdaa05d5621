"""Similarity in meaning of statements to the words of a question, in either language.

Each word of the question is matched with the nearest token of the statement, by the embedding
model's contextual vectors (Khattab & Zaharia, ColBERT, SIGIR 2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portal.answering.quoting.questions import Word
from portal.domain.embedding import Embedder, TokenEmbedder, TokenVectors
from portal.errors import EmbedderUnavailable, InvalidEmbedding

Likeness = NDArray[np.float32]


class Meaning:
    """The content words of one question, with the model's token vectors."""

    def __init__(self, embedder: TokenEmbedder, question: str, words: Sequence[Word]) -> None:
        """Embed the words. Raises EmbedderUnavailable when the model gives no token vectors."""
        self._embedder = embedder
        (asked,) = embedder.embed_tokens([question], is_question=True)
        self._groups = [_tokens_in(asked, word.start, word.end) for word in words]
        self._vectors = asked.vectors

    def likeness(self, texts: Sequence[str]) -> Likeness:
        """Return cosines in [-1, 1] of each word's nearest token in each text: (texts, words)."""
        found = np.zeros((len(texts), len(self._groups)), np.float32)
        known = self._embedder.embed_tokens(texts, is_question=False) if texts else []
        for row, tokens in enumerate(known):
            nearest = (self._vectors @ tokens.vectors.T).max(axis=1, initial=0.0)
            for column, group in enumerate(self._groups):
                found[row, column] = nearest[group].mean() if group else 0.0
        return found


def read_meaning(
    embedder: Embedder | TokenEmbedder | None, question: str, words: Sequence[Word]
) -> Meaning | None:
    """Return the meaning of a question; None where the model is unavailable."""
    if not words or not isinstance(embedder, TokenEmbedder):
        return None
    try:
        return Meaning(embedder, question, words)
    except (EmbedderUnavailable, InvalidEmbedding):
        return None


def _tokens_in(tokens: TokenVectors, start: int, end: int) -> list[int]:
    return [
        place
        for place, (first, last) in enumerate(tokens.spans)
        if first < end and start < last
    ]  # fmt: skip
