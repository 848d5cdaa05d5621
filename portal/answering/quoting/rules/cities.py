"""Cities: what is said of one office, trip or fair does not answer for that in another city."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from portal.answering.quoting.rules.alternatives import RULES_OUT
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms import lexicon

_HAN = re.compile(rf"[{HAN}]{{2,}}")
_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
# 每天 18:00（北京时间）
_NO_PLACE = re.compile(r"北京时间|\b(?:Beijing|London) time\b")
_MAX_HAN, _MAX_WORDS = 5, 3


def find_cities(text: str) -> frozenset[str]:
    """Return the English names of the cities that a text names, in Chinese or English."""
    known = lexicon.cities()
    text = _NO_PLACE.sub(" ", text)
    found: set[str] = set()
    for run in _HAN.findall(text):
        found |= _find(known, run, "", _MAX_HAN)
    for run in _CAPITALISED.findall(text):
        found |= _find(known, run.split(" "), " ", _MAX_WORDS)
    return frozenset(found)


def names_other_cities(asked: frozenset[str], context: str, text: str) -> bool:
    """Return whether a statement names cities, and neither it nor its headings one in question."""
    if not asked or asked & (said := find_cities(text)) or not said:
        return False
    return not (RULES_OUT.search(fold(text).text) or asked & find_cities(context))


def _find(
    known: Mapping[str, frozenset[str]], parts: Sequence[str], separator: str, max_parts: int
) -> set[str]:
    """Return the cities in a row of characters or words, of names within names the longest."""
    found: set[str] = set()
    first = 0
    while first < len(parts):
        names = {
            length: separator.join(parts[first : first + length])
            for length in range(min(max_parts, len(parts) - first), 0, -1)
        }
        length = next((length for length, name in names.items() if name in known), 0)
        if length:
            found |= known[names[length]]
        first += length or 1
    return found
