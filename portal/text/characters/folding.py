"""Folding of spelling variants of a word to the same text, character by character."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from functools import cache, lru_cache

import opencc

from portal.text.characters.normalise import NormalisedText, normalise
from portal.text.characters.scripts import HAN

_HAS_HAN = re.compile(f"[{HAN}]")
_simplifier = opencc.OpenCC("t2s")
# Known characters that are their own fold.
_met_folded: set[str] = set()
_MAX_MET = 65536


def fold(text: str) -> NormalisedText:
    """Return text in NFKC, lower case, simplified, without accents; offsets map back to `text`."""
    normalised = normalise(text)
    lowered = normalised.text.lower()
    if not lowered.isascii():
        if len(lowered) != len(normalised.text):  # İ alone becomes two characters.
            lowered = normalised.text.replace("İ", "i").lower()
        unknown = set(lowered) - _met_folded
        folds = {ord(c): folded for c in unknown if (folded := _fold_character(c)) != c}
        if len(_met_folded) > _MAX_MET:
            _met_folded.clear()
        _met_folded.update(c for c in unknown if ord(c) not in folds)
        if folds:
            lowered = lowered.translate(folds)
        if _HAS_HAN.search(lowered):
            lowered = _simplify(lowered)
    return normalised.with_text(lowered)


def _simplify(text: str) -> str:
    simplified: str = _simplifier.convert(text)
    if len(simplified) == len(text):
        return simplified
    # No entry of OpenCC 1.4 changes a length; if one ever does, offsets must stay right.
    return "".join(s if len(s := _simplifier.convert(c)) == 1 else c for c in text)


@lru_cache(maxsize=65536)
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


def in_script_of(sample: str, simplified: str) -> str:
    """Return Chinese text in the script of `sample`.

    Traditional if the sample has a character that Simplified Chinese writes otherwise.
    """
    han = "".join(_HAS_HAN.findall(sample))
    if _simplifier.convert(han) == han:
        return simplified
    traditional: str = _traditionaliser().convert(simplified)
    return traditional


@cache
def _traditionaliser() -> opencc.OpenCC:
    return opencc.OpenCC("s2t")


def spellings(character: str) -> str:
    """Return every character that may stand for this one, sorted, itself included.

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
