"""Tables with a row a day or a week: who is on call on 12 May no other row says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date

from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

_WEEKLY = re.compile(r"\bweek|周")
_SPAN = re.compile(r"(?<![-\d])\d{1,2}\s?[–—~至到-]\s?\d{1,2}(?![-\d])")  # 7–13 July
_LEAP_YEAR = 2024  # Has every day of a year.
_MIN_ROWS = 3


def rows_of_other_days(asked: Collection[str], rows: Sequence[Statement]) -> frozenset[int]:
    """Return the indexes of the rows that begin with another day than the one in question, in
    tables that have one in each row. A week begins with its day. `asked` are terms of dates."""
    if len(asked) != 1:
        return frozenset()
    (day,) = map(_number_of, asked)
    tables: dict[int, dict[int, int]] = defaultdict(dict)
    without: set[int] = set()
    for place, row in enumerate(rows):
        if not row.cells or row.group is None:
            continue
        found = find_dates(row.cells[0])
        if len(found) == 1 and not _SPAN.search(row.cells[0]):
            tables[row.group][place] = _number_of(found[0].term)
        else:
            without.add(row.group)
    return frozenset(
        place
        for group, days in tables.items()
        if group not in without and len(days) >= _MIN_ROWS
        for place, first in days.items()
        if not 0 <= day - first < (7 if _is_weekly(rows[place]) else 1)
    )


def _is_weekly(row: Statement) -> bool:
    return _WEEKLY.search(fold(row.header[0]).text) is not None if row.header else False


def _number_of(term: str) -> int:
    """Return the place of a date in a year: of "1-20", the 20th day."""
    month, day = map(int, term.split("-"))
    try:
        return date(_LEAP_YEAR, month, day).timetuple().tm_yday
    except ValueError:  # 30 February
        return 0
