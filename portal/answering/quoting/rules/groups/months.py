"""Months: the sales of January do not answer for February."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.answering.figures import counted
from portal.answering.quoting.questions import find_dates
from portal.text.characters.folding import fold

_LONG = "january|february|march|april|may|june|july|august|september|october|november|december"
_NAMES = _LONG.split("|")
_SHORT = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_NO_DAY_BEFORE = r"(?<!\d )(?<!\dth )(?<!\dst )(?<!\dnd )(?<!\drd )"
_DAY_OF_MONTH = r"\d{1,2}(?![\d.,%])|\s\d{1,2}\s?[日号]|\s?[日号底初中起至到前后之以]"
# A whole month, not a day of it, and not a time from or until which something holds.
_MONTH = re.compile(
    rf"(?<!since )(?<!from )(?<!until )(?<!till )(?<!by )(?<!before )(?<!after )"
    rf"{_NO_DAY_BEFORE}(?<!\d of )(?<!\dth of )\b({_LONG})\b"
    r"(?! \d{1,2}\b)"
    rf"|{_NO_DAY_BEFORE}(?<![-–~])\b({_SHORT})\b\.?(?= (?:19|20)\d\d\b|;|\Z)"
    rf"|(?<![\d.])(1[0-2]|0?[1-9])\s?月(?:份|(?!{_DAY_OF_MONTH}))"
    r"|(?<![一二三四五六七八九十])(十[一二]?|[一二三四五六七八九])月(?:份|(?![一二三四五六七八九十日号底初中起至到前后之以]))"
)
_HAN_MONTH = r"1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九]"
_SPAN = re.compile(
    rf"\b({_LONG}|{_SHORT})\b\.?\s?(?:to|through|until|till|-|–)\s?({_LONG}|{_SHORT})\b"
    rf"|(?<![\d.])({_HAN_MONTH})\s?月?\s?(?:-|–|~|至|到)\s?(?:次年|翌年|来年|第二年)?\s?({_HAN_MONTH})\s?月"
)
_MENTIONED = re.compile(rf"\b({_LONG})\b|(?<![\d.])({_HAN_MONTH})\s?月")
_IN_MAY = re.compile(r"\b(?:in|of|for|during|last|this|next) may\b|\bmay(?: (?:19|20)\d\d|'s)\b")


def find_months(text: str) -> frozenset[int]:
    """Return the months that a text is about, January as 1; of a span, every month."""
    folded = fold(text).text
    found = set()
    for match in _SPAN.finditer(folded):
        first, last = (_number(one) for one in match.groups() if one)
        found |= {month % 12 + 1 for month in range(first - 1, last + 12 * (last < first))}
    for match in _MONTH.finditer(_SPAN.sub(" ", folded)):
        name = next(filter(None, match.groups()))
        if name != "may" or _IN_MAY.search(folded):
            found.add(_number(name))
    return frozenset(found)


def find_mentioned_months(text: str) -> frozenset[int]:
    """Return the months that a text names in any way: 4 of "by 30 April" and 4月底前."""
    found = _MENTIONED.findall(fold(text).text)
    return frozenset(_number(next(filter(None, names))) for names in found)


def columns_of(months: frozenset[int], header: Sequence[str]) -> dict[int, frozenset[int]]:
    """Return the places of the columns that are about months ("Peak Jul–Oct"), each with those of
    them that are asked about; nothing if no column has one."""
    if not months:
        return {}
    found = {
        place: said & months for place, name in enumerate(header) if (said := find_months(name))
    }
    return found if any(found.values()) else {}


def name_of(month: int, *, is_han: bool) -> str:
    return f"{month}月" if is_han else _NAMES[month - 1]


def _number(month: str) -> int:
    if month[0].isalpha() and month.isascii():
        return next(place for place, name in enumerate(_NAMES, 1) if name[:3] == month[:3])
    return int(month if month.isdigit() else counted(month))


def find_months_of_days(text: str) -> frozenset[int]:
    """Return the months of the dates in a text: 6 of "12 June 2026"."""
    return frozenset(int(one.term.split("-")[0]) for one in find_dates(text))
