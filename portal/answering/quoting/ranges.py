"""Numbers of a question: the table rows whose range includes one (four years, in "3–5 years"), and
statements about another number than the one in question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.answering.figures import figures_in
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

_FIGURES = {
    **{sign: value for value, sign in enumerate("零一二三四五六七八九十")},
    "两": 2, "半": 0.5,
    **{
        word: value
        for value, word in enumerate(
            ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
        )
    },
}  # fmt: skip
_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|{'|'.join(_FIGURES)})"
_UNIT = r"(?:个?[年月周天日人元岁克米]|小时|分钟|公里|公斤|万元?|[a-z%]+)"
_ASKED = re.compile(rf"({_NUMBER})\s*-?\s*({_UNIT})")
_BETWEEN = re.compile(rf"({_NUMBER})\s*{_UNIT}?\s*(?:-|~|至|到|to)\s*({_NUMBER})\s*({_UNIT})?")
_FROM = re.compile(
    rf"(?:over|more than|above|at least|from|超过|满|>=?|≥)\s*({_NUMBER})\s*({_UNIT})?"
    rf"|({_NUMBER})\s*({_UNIT})?\s*(?:\+|及?以上|or more|and (?:more|over|above)|起)"
)
_UP_TO = re.compile(
    rf"(?:under|less than|below|up to|at most|不足|不满|少于|低于|<=?|≤)\s*({_NUMBER})\s*({_UNIT})?"
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
    return _ASKED.search(text) is not None or text.isdigit() or text in _FIGURES


def has_other_figure(question: str, answer: str, text: str) -> bool:
    """Tell whether an answer has a number of the question and the text only others: room 2, where
    the question and its answer are about room 3."""
    shared, said = figures_in(question) & figures_in(answer), figures_in(text)
    return bool(shared and said) and not shared & said


def _holds(cell: str, figure: float, unit: str) -> bool:
    if match := _BETWEEN.search(cell):
        low, high, named = _value(match[1]), _value(match[2]), match[3]
    elif match := _FROM.search(cell):
        low, high, named = _value(match[1] or match[3]), float("inf"), match[2] or match[4]
    elif match := _UP_TO.search(cell):
        low, high, named = 0.0, _value(match[1] or match[3]), match[2] or match[4]
    else:
        return False
    return low <= figure <= high and (not named or _same_unit(named, unit))


def _same_unit(one: str, other: str) -> bool:
    one, other = one.removeprefix("个").rstrip("s"), other.removeprefix("个").rstrip("s")
    return one == other


def _value(figure: str) -> float:
    return float(_FIGURES[figure]) if figure in _FIGURES else float(figure.replace(",", ""))
