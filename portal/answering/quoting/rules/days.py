"""Tables with a row per day or week: only one row says who is on call on 12 May."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import date

from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

# Headers of days, but not of deadlines or of days from which something is valid.
_DAILY = re.compile(r"date|day|日期|日子?|值班日期?")
_WEEKLY = re.compile(r"week(?: of| from| start\w*| beginning| commencing)?|周次?|星期")
# "Before 12 May" and "18 to 20 November" are about other rows as well.
_OF_SEVERAL = re.compile(
    r"\d(?:st|nd|rd|th)?\s?(?:to|and|or|-|–|—|~|至|到|和|、|及)\s?\d"
    r"|\b(?:before|after|by|since|until|till|from|between)\b|[之以]?[前后]|[起至到]"
)
_BESIDE_DAY = re.compile(r"(?<!\d)\d{1,3}(?!\d)|[–—~至到起前后]|\b(?:to|through|from|until|by)\b")
_LEAP_YEAR = 2024  # It has every day that a year can have.
_DAYS_OF_YEAR = 366
_MIN_ROWS = 3


def rows_of_other_days(question: str, rows: Sequence[Statement]) -> frozenset[int]:
    """Return the indexes of the rows about another day than the one asked about, in tables in which
    every row begins with a day. Rows of a week begin with its first day."""
    asked = find_dates(question)
    if len(asked) != 1 or _OF_SEVERAL.search(fold(question).text):
        return frozenset()
    day = _number_of(asked[0].term)
    tables: dict[int, dict[int, int]] = defaultdict(dict)
    without: set[int] = set()
    for place, row in enumerate(rows):
        if row.group is None or not row.cells:
            continue
        if _length(row) and (first := _only_day(row.cells[0])) is not None:
            tables[row.group][place] = first
        else:
            without.add(row.group)
    return frozenset(
        place
        for group, days in tables.items()
        if group not in without and len(days) >= _MIN_ROWS
        for place, first in days.items()
        if (day - first) % _DAYS_OF_YEAR >= _length(rows[place])
    )


def _length(row: Statement) -> int:
    """Return how many days a row is about according to its header; 0 if the header does not say."""
    name = fold(row.header[0]).text.strip() if row.header else ""
    return 1 if _DAILY.fullmatch(name) else 7 if _WEEKLY.fullmatch(name) else 0


def _only_day(cell: str) -> int | None:
    """Return the day of the year that a cell names; None unless it names a single day."""
    found = find_dates(cell)
    if len(found) != 1:
        return None
    rest = cell[: found[0].start] + " " + cell[found[0].end :]
    return None if _BESIDE_DAY.search(fold(rest).text) else _number_of(found[0].term)


def _number_of(term: str) -> int:
    """Return the day of the year of a date: 20 of "1-20"; 0 if there is no such date."""
    month, day = map(int, term.split("-"))
    try:
        return date(_LEAP_YEAR, month, day).timetuple().tm_yday
    except ValueError:  # 30 February
        return 0
