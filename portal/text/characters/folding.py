"""Folding of spelling variants of a word to the same text, character by character."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import opencc

from portal.text.characters.normalise import NormalisedText, normalise, normalised_alone
from portal.text.characters.scripts import HAN_RUN

_simplifier = opencc.OpenCC("t2s")
_MAX_CACHED = 65536
_ODD = "\0"
"""Stands for a character whose fold depends on its neighbours, or is not one character."""


class _Folds(dict[int, str]):
    """The fold of each character, computed on first use."""

    def __init__(self, fold_character: Callable[[str], str]) -> None:
        super().__init__()
        self._fold_character = fold_character

    def __missing__(self, code: int) -> str:
        if len(self) > _MAX_CACHED:
            self.clear()
        folded = self[code] = self._fold_character(chr(code))
        return folded


def fold(text: str) -> NormalisedText:
    """Return text in NFKC, lower case, simplified, without accents; offsets map back to `text`."""
    folded = text.lower() if text.isascii() else text.translate(_folds)
    if _ODD not in folded:
        return NormalisedText(simplify(folded))
    normalised = normalise(text)
    # İ alone would become two characters.
    folded = normalised.text.replace("İ", "i").lower().translate(_folds_of_normalised)
    return normalised.with_text(simplify(folded))


def simplify(text: str) -> str:
    """Return Chinese in simplified characters, character for character."""
    if text.isascii() or not HAN_RUN.search(text):
        return text
    simplified: str = _simplifier.convert(text)
    if len(simplified) == len(text):
        return simplified
    # No entry of OpenCC 1.4 changes a length; if one ever does, offsets must stay right.
    return "".join(s if len(s := _simplifier.convert(c)) == 1 else c for c in text)


def _fold_character(character: str) -> str:
    """Fold one character to one: é → e, ’ → ', – → -, ٣ → 3. Other scripts keep their marks."""
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


def _fold_alone(character: str) -> str:
    lowered = (normalised_alone(character) or _ODD).lower()
    return _fold_character(lowered) if len(lowered) == 1 else _ODD


_folds, _folds_of_normalised = _Folds(_fold_alone), _Folds(_fold_character)


def in_script_of(sample: str, simplified: str) -> str:
    """Return Chinese text in the script of `sample`.

    Traditional if the sample has a character that Simplified Chinese writes differently.
    """
    han = "".join(HAN_RUN.findall(sample))
    if _simplifier.convert(han) == han:
        return simplified
    traditional: str = _traditionaliser().convert(simplified)
    return traditional


@cache
def _traditionaliser() -> opencc.OpenCC:
    return opencc.OpenCC("s2t")


def spellings(character: str) -> str:
    """Return every character that may stand for this one, including itself, sorted.

    Covers both Chinese scripts, case, width and accents. Unlike `fold` it looks at single
    characters: 干 stands for 乾 and 乾 for 干, in any word.
    """
    return _spellings().get(_key(character), character)


def _key(character: str) -> str:
    """Return a key that all spellings of a character share; itself for exceptions."""
    normal = unicodedata.normalize("NFKC", character).lower()
    folded = _fold_character(normal) if len(normal) == 1 else character
    return _han_keys().get(folded, folded)


@cache
def _spellings() -> dict[str, str]:
    found: dict[str, set[str]] = defaultdict(set)
    # All but Han and Hangul, then compatibility forms; Han only where characters share a fold.
    others = (*range(0x21, 0x3400), *range(0xA640, 0xAC00), *range(0xF900, 0x10000))
    for character in (*map(chr, others), *_han_keys()):
        if (key := _key(character)) != character:
            found[key] |= {key, character}
    return {key: "".join(sorted(characters)) for key, characters in found.items()}


# The second adds Taiwan's variants (着 as 著); other regional variants are in the first.
_SCRIPTS = ("t2s", "s2tw")


@cache
def _han_keys() -> dict[str, str]:
    """Map characters that one of the scripts writes alike to a common character.

    Leaves out those that map to themselves. Covers the basic plane; other characters are the same
    in both scripts, or very rare.
    """
    han = [chr(code) for code in range(0x3400, 0xA000)]
    lines = "\n".join(han)
    parents: dict[str, str] = {}

    def root(character: str) -> str:
        while character in parents:
            character = parents[character]
        return character

    for config in _SCRIPTS:
        converted = opencc.OpenCC(config).convert(lines).split("\n")
        for one, other in zip(han, converted, strict=True):
            if one != other and len(other) == 1 and root(one) != root(other):
                parents[root(one)] = root(other)
    return {character: root(character) for character in parents}
