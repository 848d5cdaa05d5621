"""A tokenizer like SentencePiece for XLM-R: a unigram model.

Kudo, Subword Regularization, 2018: of all ways to split a text into known pieces the most probable,
found with Viterbi's algorithm.
"""

from __future__ import annotations

import re
from functools import lru_cache

from portal.embeddings.e5.weights import Vocabulary

# Precedes each word in the vocabulary, in place of the space.
_WORD_START = "\u2581"
_SPACES = re.compile("  +")
_WORD = re.compile(f"{_WORD_START}[^{_WORD_START}]*")
# Words recur often; runs of Chinese do not.
_MAX_REMEMBERED_LENGTH = 24
_REMEMBERED = 20_000
# The cost of an unknown character relative to the least probable piece.
_UNKNOWN_PENALTY = 10.0
_IMPOSSIBLE = float("-inf")


class Tokenizer:
    """Splits texts into the pieces of a vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        scores = vocabulary.scores.tolist()
        self._replacements = dict(vocabulary.replacements)
        self._unknown = vocabulary.unknown
        self._unknown_score = min(scores) - _UNKNOWN_PENALTY
        self._pieces = {
            piece: (score, number)
            for number, (piece, score) in enumerate(zip(vocabulary.pieces, scores, strict=True))
            if piece and number != vocabulary.unknown
        }
        if any(_WORD_START in piece[1:] for piece in self._pieces):
            raise ValueError("a piece goes over the beginning of a word")
        # The max length of a piece by first character, which saves most lookups.
        self._longest: dict[str, int] = {}
        for piece in self._pieces:
            self._longest[piece[0]] = max(self._longest.get(piece[0], 1), len(piece))
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._cut)

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the text's pieces, without those for its beginning and end."""
        text = _SPACES.sub(" ", text.translate(self._replacements))
        text = text if text.startswith(" ") else f" {text}"
        numbers: list[int] = []
        # No piece crosses the beginning of a word, so words can be split one by one.
        for word in _WORD.findall(text.replace(" ", _WORD_START)):
            cut = self._remembered if len(word) <= _MAX_REMEMBERED_LENGTH else self._cut
            numbers += cut(word)
        return numbers

    def _cut(self, word: str) -> tuple[int, ...]:
        length = len(word)
        best = [0.0] + [_IMPOSSIBLE] * length
        piece_to = [(0, self._unknown)] * (length + 1)  # Where the piece begins, and its number.
        for start in range(length):
            before = best[start]
            longest = self._longest.get(word[start], 1)
            for end in range(start + 1, min(length, start + longest) + 1):
                known = self._pieces.get(word[start:end])
                if known is not None and before + known[0] > best[end]:
                    best[end], piece_to[end] = before + known[0], (start, known[1])
            if before + self._unknown_score > best[start + 1]:
                best[start + 1] = before + self._unknown_score
                piece_to[start + 1] = (start, self._unknown)
        numbers = []
        place = length
        while place > 0:
            place, number = piece_to[place]
            numbers.append(number)
        return tuple(reversed(numbers))
