"""Numbers of a question: table rows and clauses whose range includes one (four years, in "3–5
years"), and statements about a number other than the one asked about."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from portal.answering.figures import NUMBER_WORDS, counted, figures_in
from portal.answering.quoting.rules.kinds.patterns import CURRENCY
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

_FIGURES = {"半": 0.5, **NUMBER_WORDS}
# The longest first: "fourteen" is not "four". Whole words: "money" has no "one".
_NUMBER_WORD = f"(?<![a-z])(?:{'|'.join(sorted(_FIGURES, key=len, reverse=True))})(?![a-z])"
# Bounded, because a cell may consist of nothing but digits or spaces.
_GAP = r"\s{0,3}"
_HAN_NUMBER = "[零一二三四五六七八九十百千两]{1,12}"
_NUMBER = rf"(?:\d[\d,]{{0,14}}(?:\.\d{{1,6}})?|{_HAN_NUMBER}|{_NUMBER_WORD})"
_UNIT = (
    r"(?:个?[年月周天日人元岁克米次台件份张页名位条]|个?(?:小时|星期)|分钟|公里|公斤|万元?|[a-z%]+)"
)
# What a unit is called in the other language.
_ENGLISH_UNITS = {
    "年": "year", "岁": "year", "月": "month", "周": "week", "星期": "week", "天": "day",
    "日": "day", "小时": "hour", "分钟": "minute", "公里": "km", "公斤": "kg", "克": "g",
    "米": "m", "人": "people",
}  # fmt: skip
_ASKED = re.compile(rf"({_NUMBER}){_GAP}-?{_GAP}({_UNIT})")
# "一个月多少钱" asks for the price of a month, not for what begins after one.
_PRICE = re.compile(r"[^,.;?]{0,6}?(?:多少钱|几块钱?|收费|费用|租金)")
# 万 after the second of two numbers applies to both: 5–20 万元.
_SHARED_TIMES = re.compile(rf"({_NUMBER})({_GAP}(?:-|~|至|到){_GAP})({_NUMBER}){_GAP}([万亿]|k\b)")
_CURRENCY = rf"[$€£¥]|{CURRENCY}"
_AMOUNT = re.compile(
    rf"(?:(?P<sign>{_CURRENCY}){_GAP})?(?P<figure>{_NUMBER})(?:{_GAP}(?P<times>[千万亿]|k\b))?"
    rf"(?:{_GAP}(?P<unit>{_CURRENCY}))?",
    re.ASCII,  # A code ends where Chinese begins: 500 usd以内.
)
_COUNTED = re.compile(rf"{_GAP}({_UNIT})")
_TIMES = {"千": 1e3, "k": 1e3, "万": 1e4, "亿": 1e8}
_OPEN_BOUND = re.compile(
    r"(?:(?P<more>over|more than|above|超过)|under|less than|below|不[足满到]|[少低]于)\s?\Z"
)
_CLAUSE = re.compile(r"[^\s;；,，。:：][^;；,，。\n]*")
# The common unit of all currencies.
_MONEY = "money"
_INCLUDED = re.compile(r"\((?:不?包?含|inclusive|exclusive)\)")
_BETWEEN = re.compile(
    rf"({_NUMBER}){_GAP}{_UNIT}?{_GAP}(?:-|~|至|到|to){_GAP}({_NUMBER}){_GAP}({_UNIT})?"
)
# An open bound does not include the number itself.
_FROM = re.compile(
    r"(?:(?P<open>over|more than|above|超过|>(?!=))|at least|from"
    rf"|after(?={_GAP}{_NUMBER}{_GAP}{_UNIT})|(?<!不)满|>=|≥){_GAP}"
    rf"({_NUMBER}){_GAP}({_UNIT})?"
    rf"|({_NUMBER}){_GAP}({_UNIT})?{_GAP}(?:\+|及?以上|or more|and (?:more|over|above)|起)"
)
_UP_TO = re.compile(
    rf"(?:(?P<open>under|less than|below|不[足满到]|[少低]于|<(?!=))|up to|at most|<=|≤){_GAP}"
    rf"({_NUMBER}){_GAP}({_UNIT})?"
    rf"|({_NUMBER}){_GAP}({_UNIT})?{_GAP}(?:及?以[下内]|or less|and (?:less|under|below))"
)


def rows_in_range(question: str, rows: Sequence[Statement]) -> dict[int, str]:
    """Return the indexes of the rows whose first cell is a range that includes a number of the
    question, with that number as the question has it. Of nested ranges only the innermost is
    returned: for six years "over 5 years", not "over 2 years"."""
    first_cells = {
        place: (row.group, _in_full(row.cells[0])) for place, row in enumerate(rows) if row.cells
    }
    return _in_range(question, first_cells)


def with_figure(question: str, text: str) -> str:
    """Return a text with a number of the question before the clause whose range includes it: for
    six years "after 3 years 22 days; six years: after 5 years 25 days". Returns the text as it is
    unless it has several such clauses."""
    clauses = {
        one.start(): clause
        for one in _CLAUSE.finditer(text)
        if _ASKED.search(clause := _in_full(one[0]))
    }
    bounded = [one for one in clauses.values() if _FROM.search(one) or _UP_TO.search(one)]
    if len(bounded) < 2:  # noqa: PLR2004
        return text
    found = _in_range(question, {start: (None, one) for start, one in clauses.items()})
    for start, figure in sorted(found.items(), reverse=True):
        text = f"{text[:start]}{figure}: {text[start:]}"
    return text


def _in_range(question: str, cells: Mapping[int, tuple[int | None, str]]) -> dict[int, str]:
    """Return the places of the cells that include a number of the question, with that number. Of
    nested ranges in one group only the innermost is returned."""
    folded = fold(question).text
    figures = [
        _beyond(m, _Figure(m[0], _value(m[1]), m[2]))
        for m in _ASKED.finditer(folded)
        if not (m[1] == "一" and _PRICE.match(folded, m.end()))
    ]
    # 一年几天: "a year" is not a figure to look up, if there is another.
    figures = [one for one in figures if one.value != 1] or figures
    amounts = [_beyond(m, one) for m in _AMOUNT.finditer(folded) if (one := _amount(m))]
    if not figures and not amounts:
        return {}
    # 万元 may be in the header only, so the 8 of 8 万元 is tried before 80000.
    for asked in (figures, amounts):
        found = {
            place: (group, span, figure)
            for place, (group, cell) in cells.items()
            for span, figure in _ranges(cell, asked)
        }
        innermost = {
            place: figure
            for place, (group, span, figure) in found.items()
            if not any(
                group == other and _is_inside(inner, span) for other, inner, _ in found.values()
            )
        }
        if innermost:
            return innermost
    return {}


class _Figure(NamedTuple):
    text: str
    value: float
    unit: str


def _ranges(cell: str, asked: Sequence[_Figure]) -> Iterator[tuple[tuple[float, float], str]]:
    """Yield the range of a cell for each figure that it includes, with the figure's text."""
    for one in asked:
        span = _range(cell, one.unit)
        if span is not None and span[0] <= one.value <= span[1]:
            yield span, one.text


def _beyond(match: re.Match[str], figure: _Figure) -> _Figure:
    """Return the figure that a question is about: for "more than 5", the next number above 5."""
    if not (bound := _OPEN_BOUND.search(match.string, 0, match.start())):
        return figure
    inward = math.inf if bound["more"] else -math.inf
    return figure._replace(value=math.nextafter(figure.value, inward))


def _is_inside(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


def has_figure(text: str) -> bool:
    """Return whether a word of a question is a number, with or without its unit."""
    return _ASKED.search(_in_full(text)) is not None or re.fullmatch(_NUMBER, text) is not None


def has_other_figure(question: str, answer: str, text: str) -> bool:
    """Return whether an answer has a number of the question and the text only others: room 2, if
    the question and its answer are about room 3."""
    shared, said = figures_in(question) & figures_in(answer), figures_in(text)
    return bool(shared and said) and not shared & said


def _range(cell: str, unit: str) -> tuple[float, float] | None:
    """Return the lowest and highest number that a cell allows; None if it has no bound in this
    unit."""
    if match := _BETWEEN.search(cell):
        return (_value(match[1]), _value(match[2])) if _fits_unit(match[3], unit) else None
    top = _UP_TO.search(cell)
    # "Under one year" is not a lower bound, though 不满一年 contains 满一年.
    bottom = _FROM.search(_UP_TO.sub(" ", cell))
    bounds = [bound for bound in (bottom, top) if bound is not None]
    if not bounds or not all(_fits_unit(one[3] or one[5], unit) for one in bounds):
        return None
    return _bound(bottom, inward=math.inf), _bound(top, inward=-math.inf)


def _bound(match: re.Match[str] | None, *, inward: float) -> float:
    """Return the number of a bound; that of an open one is the next number further in."""
    if match is None:
        return -inward
    value = _value(match[2] or match[4])
    return math.nextafter(value, inward) if match["open"] else value


def _in_full(text: str) -> str:
    """Return a text folded, with amounts as one number and a common unit: 八万块 as 80000 money."""

    def spread(match: re.Match[str]) -> str:
        first, to, second, times = match.groups()
        # 5000 至 5 万 has 万 only once.
        is_shared = _value(first) < _value(second)
        return f"{first}{times if is_shared else ''}{to}{second}{times}"

    def written_out(match: re.Match[str]) -> str:
        amount = _amount(match)
        if amount is None:
            return match[0]
        return f"{amount.value:.12g}{f' {_MONEY}' if amount.unit is _MONEY else ''}"

    folded = _INCLUDED.sub("", fold(text).text)
    return _AMOUNT.sub(written_out, _SHARED_TIMES.sub(spread, folded))


def _amount(match: re.Match[str]) -> _Figure | None:
    """Return an amount of money, or a round number of something else with its unit (8 万人); None
    for a number with neither."""
    times, is_money = match["times"], match["sign"] or match["unit"]
    if not (times or is_money):
        return None
    counted_in = None if is_money else _COUNTED.match(match.string, match.end())
    unit = counted_in[1] if counted_in else _MONEY
    return _Figure(match[0].strip(), _value(match["figure"]) * _TIMES.get(times, 1), unit)


def _fits_unit(named: str | None, unit: str) -> bool:
    return not named or _unit(named) == _unit(unit)


def _unit(name: str) -> str:
    bare = name.removeprefix("个").rstrip("s")
    return _ENGLISH_UNITS.get(bare, bare)


def _value(figure: str) -> float:
    if figure in _FIGURES:
        return float(_FIGURES[figure])
    is_han = re.fullmatch(_HAN_NUMBER, figure) is not None
    return float(counted(figure) if is_han else figure.replace(",", ""))
