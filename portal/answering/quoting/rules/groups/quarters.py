"""Quarters of a year: the revenue of the second quarter does not answer for the third."""

from __future__ import annotations

import re

from portal.answering.quoting.rules.comparisons import without_comparisons
from portal.text.characters.folding import fold

_QUARTER = re.compile(
    r"(?<![a-z])q([1-4])(?![\da-z-])|第?([一二三四1-4])季度|\b(first|second|third|fourth) quarter\b"
)
# Statements about the previous quarter, in the minutes of one.
_LAST_QUARTER = re.compile(r"上个?季度|\b(?:last|previous) quarter\b")
_QUARTERS = {
    name: number
    for number, names in enumerate(("1 一 first", "2 二 second", "3 三 third", "4 四 fourth"), 1)
    for name in names.split()
}


def find_quarters(text: str) -> frozenset[int]:
    """Return the quarters of a year that a text names: 1 to 4."""
    folded = without_comparisons(fold(text).text)
    named = {_QUARTERS[one[1] or one[2] or one[3]] for one in _QUARTER.finditer(folded)}
    if _LAST_QUARTER.search(folded):
        named |= {(one - 2) % 4 + 1 for one in named}
    return frozenset(named)
