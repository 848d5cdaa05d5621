"""Months: what was sold in January does not say what was in February."""

from __future__ import annotations

import re

from portal.answering.figures import counted
from portal.answering.quoting.questions import find_dates
from portal.text.characters.folding import fold

_LONG = "january|february|march|april|may|june|july|august|september|october|november|december"
# A whole month, not a day of it, and not a time from or until which something is so.
_MONTH = re.compile(
    rf"(?<!since )(?<!from )(?<!until )(?<!till )(?<!by )(?<!before )(?<!after )"
    rf"(?<!\d )(?<!\dth )(?<!\dst )(?<!\dnd )(?<!\drd )(?<!\d of )(?<!\dth of )\b({_LONG})\b"
    r"(?! \d{1,2}\b)"
    r"|(?<![\d.])(1[0-2]|[1-9])\s?月(?:份|(?![\d\s]*[\d日号底初中起至到前后之以]))"
    r"|(?<![一二三四五六七八九十])(十[一二]?|[一二三四五六七八九])月(?:份|(?![一二三四五六七八九十日号底初中起至到前后之以]))"
)
_SPAN = re.compile(
    rf"(?:{_LONG})\s?(?:to|through|until|till|and|-|–)\s?(?:{_LONG})"
    r"|[\d一二三四五六七八九十]\s?月?\s?(?:-|–|~|至|到|和|、)\s?(?:次年|翌年|来年|第二年)?\s?"
    r"[\d一二三四五六七八九十]{1,2}\s?月"
)
_IN_MAY = re.compile(r"\b(?:in|of|for|during|last|this|next) may\b|\bmay(?: (?:19|20)\d\d|'s)\b")


def find_months(text: str) -> frozenset[int]:
    """Return the months that a text is about, January as 1; none where it names a span of them."""
    folded = fold(text).text
    if _SPAN.search(folded):
        return frozenset()
    found = set()
    for match in _MONTH.finditer(folded):
        if match[1] == "may" and not _IN_MAY.search(folded):
            continue
        if match[1]:
            found.add(_LONG.split("|").index(match[1]) + 1)
        else:
            found.add(int(match[2] or counted(match[3])))
    return frozenset(found)


def find_months_of_days(text: str) -> frozenset[int]:
    """Return the months of the dates in a text: 6 of "12 June 2026"."""
    return frozenset(int(one.term.split("-")[0]) for one in find_dates(text))
