"""Numbers of a question: the table rows whose range includes one (four years, in "3–5 years"), and
statements about another number than the one in question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.answering.figures import NUMBER_WORDS, counted, figures_in
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

_FIGURES = {"半": 0.5, **NUMBER_WORDS}
# The longest first: "fourteen" is not "four".
_NUMBER_WORD = "|".join(sorted(_FIGURES, key=len, reverse=True))
_HAN_NUMBER = "[零一二三四五六七八九十百千两]+"
_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|{_HAN_NUMBER}|{_NUMBER_WORD})"
_UNIT = r"(?:个?[年月周天日人元岁克米]|个?(?:小时|星期)|分钟|公里|公斤|万元?|[a-z%]+)"
# What a unit is called in the other language.
_ENGLISH_UNITS = {
    "年": "year", "岁": "year", "月": "month", "周": "week", "星期": "week", "天": "day",
    "日": "day", "小时": "hour", "分钟": "minute", "公里": "km", "公斤": "kg", "克": "g",
    "米": "m", "人": "people",
}  # fmt: skip
_ASKED = re.compile(rf"({_NUMBER})\s*-?\s*({_UNIT})")
_BETWEEN = re.compile(rf"({_NUMBER})\s*{_UNIT}?\s*(?:-|~|至|到|to)\s*({_NUMBER})\s*({_UNIT})?")
# An open bound does not include the number itself.
_FROM = re.compile(
    rf"(?:(?P<open>over|more than|above|超过|>(?!=))|at least|from|(?<!不)满|>=|≥)\s*"
    rf"({_NUMBER})\s*({_UNIT})?"
    rf"|({_NUMBER})\s*({_UNIT})?\s*(?:\+|及?以上|or more|and (?:more|over|above)|起)"
)
_UP_TO = re.compile(
    rf"(?:(?P<open>under|less than|below|不[足满到]|[少低]于|<(?!=))|up to|at most|<=|≤)\s*"
    rf"({_NUMBER})\s*({_UNIT})?"
    rf"|({_NUMBER})\s*({_UNIT})?\s*(?:及?以[下内]|or less|and (?:less|under|below))"
)


def rows_in_range(question: str, rows: Sequence[Statement]) -> frozenset[int] | None:
    """Return the indexes of the rows whose first cell is a range that includes a number of the
    question; None when no table has such a range."""
    asked = [(_value(m[1]), m[2]) for m in _ASKED.finditer(fold(question).text)]
    if not asked:
        return None
    found = frozenset(
        place
        for place, row in enumerate(rows)
        if row.cells and any(_holds(fold(row.cells[0]).text, *one) for one in asked)
    )
    return found or None


def has_figure(text: str) -> bool:
    """Tell whether a word of a question is a number, with or without its unit."""
    return _ASKED.search(text) is not None or re.fullmatch(_NUMBER, text) is not None


def has_other_figure(question: str, answer: str, text: str) -> bool:
    """Tell whether an answer has a number of the question and the text only others: room 2, where
    the question and its answer are about room 3."""
    shared, said = figures_in(question) & figures_in(answer), figures_in(text)
    return bool(shared and said) and not shared & said


def _holds(cell: str, figure: float, unit: str) -> bool:
    if match := _BETWEEN.search(cell):
        low, high, named = _value(match[1]), _value(match[2]), match[3]
        return low <= figure <= high and (not named or _same_unit(named, unit))
    top = _UP_TO.search(cell)
    # "Under one year" is no lower bound: 不满一年 ends in 满一年.
    bottom = _FROM.search(_UP_TO.sub(" ", cell))
    if not (top or bottom):
        return False
    for bound, sign in ((bottom, 1), (top, -1)):
        if bound is not None:
            beyond = sign * (figure - _value(bound[2] or bound[4]))
            named = bound[3] or bound[5]
            if beyond < 0 or (bound["open"] and not beyond):
                return False
            if named and not _same_unit(named, unit):
                return False
    return True


def _same_unit(one: str, other: str) -> bool:
    return _unit(one) == _unit(other)


def _unit(name: str) -> str:
    bare = name.removeprefix("个").rstrip("s")
    return _ENGLISH_UNITS.get(bare, bare)


def _value(figure: str) -> float:
    if figure in _FIGURES:
        return float(_FIGURES[figure])
    is_han = re.fullmatch(_HAN_NUMBER, figure) is not None
    return float(counted(figure) if is_han else figure.replace(",", ""))
