"""An estimate of the tokens a language model counts, without the model."""

from __future__ import annotations

import re

from portal.text.characters.scripts import HAN

# Fitted to the SentencePiece vocabulary of multilingual-e5 (XLM-R) and set on the high side, so
# that a text which is counted as fitting does fit: on 800 slices of the development sets and of
# code the estimate is 1.0 to 1.7 times the true count, 1.25 times in the median.
_PIECES = re.compile(
    rf"(?P<word>[A-Za-z]+)|(?P<digits>\d+)|(?P<han>[{HAN}]+)|(?P<other>[^\W_]+)|(?P<sign>[^\w\s]|_)"
)
_PER_HAN_CHARACTER = 0.95
_PER_OTHER_LETTER = 1.0
_PER_SIGN = 1.25
_WORD_BASE, _WORD_FREE_LETTERS, _PER_FURTHER_LETTER = 1.05, 4, 0.32
_PER_UNUSUAL_CAPITALS = 0.45  # Per letter of DEADBEEF or camelCase, which become small pieces.
_PER_DIGIT = 0.6


def token_weight(text: str) -> float:
    """Return an estimate that is hardly ever below the true count (without special tokens). Weights
    of neighbouring texts add up."""
    return sum(map(_piece_weight, _PIECES.finditer(text)))


def _piece_weight(match: re.Match[str]) -> float:
    kind = match.lastgroup
    if kind == "sign":
        return _PER_SIGN
    length = match.end() - match.start()
    if kind == "han":
        return length * _PER_HAN_CHARACTER
    if kind == "digits":
        return max(1.0, length * _PER_DIGIT)
    if kind == "other":
        return length * _PER_OTHER_LETTER
    word = match.group()
    if not word[1:].islower() and length > 1:
        return max(_WORD_BASE, length * _PER_UNUSUAL_CAPITALS)
    return _WORD_BASE + max(0, length - _WORD_FREE_LETTERS) * _PER_FURTHER_LETTER
