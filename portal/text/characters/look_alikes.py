"""Names that look alike, by the confusable characters of Unicode (UTS 39)."""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict
from functools import cache
from importlib.resources import files

_DIRECTION_MARKS = str.maketrans("", "", "\u200e\u200f")
# A capital I looks like an l, and names are compared without regard to case.
_ONE_STROKE = str.maketrans("i", "l")
_DOT_ABOVE = "\u0307"


# Characters that display nothing but are neither control nor format characters
# (Default_Ignorable_Code_Point), and the blank of Braille.
FILLERS = frozenset(
    chr(code)
    for code in (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)


def shows_nothing(character: str) -> bool:
    """Return whether a character displays nothing, or only space."""
    return unicodedata.category(character)[0] in "CZ" or character in FILLERS


def skeleton(name: str) -> str:
    """Return the same text for all names that look alike, in any script.

    Use it for comparing only: the skeleton of "Mali" is "rnall".
    """
    seen = "".join(
        character if character.isspace() or not shows_nothing(character) else ""
        for character in name
    )
    text = unicodedata.normalize("NFKC", seen.replace("\u0130", "i"))
    text = _fold(_fold(text).casefold())
    # A second dot on an i is invisible.
    text = unicodedata.normalize("NFD", text).replace(_DOT_ABOVE, "").translate(_ONE_STROKE)
    return " ".join(unicodedata.normalize("NFC", text).split())


def _fold(text: str) -> str:
    prototypes = _prototypes()
    return "".join(prototypes.get(character, character) for character in text)


@cache
def _prototypes() -> dict[str, str]:
    """Return the representative of each character that looks like others.

    The package lists, for each character, those that it looks like. Of characters that all look
    alike, one represents the others: the one that is several letters ("rn" for m), else a letter of
    English, else the first.
    """
    source = files("confusable_homoglyphs") / "confusables.json"
    listed: dict[str, list[dict[str, str]]] = json.loads(source.read_text(encoding="utf-8"))
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for text, others in listed.items():
        members = {_plain(text), *(_plain(other["c"]) for other in others)}
        for member in members:
            alike[member] |= members
    found: dict[str, str] = {}
    for text in alike:
        if text in found:
            continue
        group, new = {text}, {text}
        while new:
            new = set().union(*(alike[character] for character in new)) - group
            group |= new
        stands_for_all = min(group, key=_preference)
        found |= {character: stands_for_all for character in group if len(character) == 1}
    return found


def _plain(text: str) -> str:
    return text.translate(_DIRECTION_MARKS)


def _preference(text: str) -> tuple[bool, bool, bool, str]:
    return (len(text) == 1, not text.isascii(), not text.isalpha(), text)
