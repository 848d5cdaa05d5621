"""Makes spellings of the same word equal, character for character."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import opencc

from portal.text.normalise import NormalisedText, normalise
from portal.text.scripts import HAN

_HAS_HAN = re.compile(f"[{HAN}]")
_simplifier = opencc.OpenCC("t2s")


def fold(text: str) -> NormalisedText:
    """NFKC, lower case, simplified, without accents; offsets lead back to `text`."""
    normalised = normalise(text)
    lowered = normalised.text.lower()
    if not lowered.isascii():
        if len(lowered) != len(normalised.text):  # İ alone becomes two characters.
            lowered = normalised.text.replace("İ", "i").lower()
        folds = {ord(c): folded for c in set(lowered) if (folded := _fold_character(c)) != c}
        if folds:
            lowered = lowered.translate(folds)
        if _HAS_HAN.search(lowered):
            lowered = _simplify(lowered)
    return normalised.with_text(lowered)


def _simplify(text: str) -> str:
    simplified: str = _simplifier.convert(text)
    if len(simplified) == len(text):
        return simplified
    # No entry of OpenCC 1.4 changes a length; should one ever do, offsets must stay right.
    return "".join(s if len(s := _simplifier.convert(c)) == 1 else c for c in text)


@lru_cache(maxsize=65536)
def _fold_character(character: str) -> str:
    """One character for one: é → e, ’ → ', – → -, ٣ → 3. Other scripts keep their marks."""
    if character in "’‘ʼ":
        return "'"
    if character in "‐‑‒–−":
        return "-"
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    base = unicodedata.normalize("NFD", character)[0]
    if base.isascii() or "\u0370" <= base <= "\u03ff":
        return "σ" if base == "ς" else base
    return {"ø": "o", "ł": "l", "đ": "d", "ı": "i"}.get(character, character)
