"""The labels that Word shows before numbered paragraphs: "第三条", "3.1", "(a)".

A paragraph, or its style, names a list (`w:num`). Lists that are based on the same abstract list
count together, unless one of them overrides where it starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from mammoth.docx.xmlparser import XmlElement

from portal.ingest.readers.list_numbers import han, letters, roman

_LEVELS = 9
_MAX_BASES = 20  # Styles that are based on each other.
_MAX_FORMAT = 60  # Longer texts around a number are hostile.
_MAX_LETTERS = 780  # Thirty times "z"; Word counts no further.
_NUMBER = re.compile(r"\d{1,6}")
_PLACE = re.compile(r"%([1-9])")
_LEGAL_DIGITS, _LEGAL_UNITS = "零壹贰叁肆伍陆柒捌玖", ("仟", "佰", "拾", "")
_TRADITIONAL_DIGITS = "零壹貳參肆伍陸柒捌玖"
_CIRCLES = {1: 0x245F, 21: 0x323C, 36: 0x328D}  # ① to ⑳, ㉑ to ㉟, ㊱ to ㊿
_MAX_CIRCLE = 50


def _repeated(number: int) -> str:
    """Return a number as letters as Word does: "z" is followed by "aa" and "bb"."""
    if not 0 < number <= _MAX_LETTERS:
        return str(number)
    return letters((number - 1) % 26 + 1) * ((number - 1) // 26 + 1)


def _circled(number: int) -> str:
    if not 0 < number <= _MAX_CIRCLE:
        return str(number)
    return chr(next(base for first, base in reversed(_CIRCLES.items()) if number >= first) + number)


def _cyclic(signs: str, number: int) -> str:
    return signs[(number - 1) % len(signs)]


def _by_digit(digits: str, number: int) -> str:
    return "".join(digits[int(digit)] for digit in str(number))


_FORMATS: Mapping[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "bullet": lambda _: "",
    "decimalZero": "{:02}".format,
    "lowerLetter": _repeated,
    "upperLetter": lambda number: _repeated(number).upper(),
    "lowerRoman": roman,
    "upperRoman": lambda number: roman(number).upper(),
    **dict.fromkeys(
        (
            "chineseCounting", "chineseCountingThousand", "taiwaneseCounting",
            "taiwaneseCountingThousand", "japaneseCounting", "koreanCounting",
        ),
        han,
    ),
    "chineseLegalSimplified": partial(han, digits=_LEGAL_DIGITS, units=_LEGAL_UNITS),
    "ideographLegalTraditional": partial(han, digits=_TRADITIONAL_DIGITS, units=_LEGAL_UNITS),
    **dict.fromkeys(
        ("ideographDigital", "taiwaneseDigital", "japaneseDigitalTenThousand"),
        partial(_by_digit, "〇一二三四五六七八九"),
    ),
    **dict.fromkeys(
        ("decimalFullWidth", "decimalFullWidth2"), partial(_by_digit, "０１２３４５６７８９")
    ),
    **dict.fromkeys(("decimalEnclosedCircle", "decimalEnclosedCircleChinese"), _circled),
    "ideographTraditional": partial(_cyclic, "甲乙丙丁戊己庚辛壬癸"),
    "ideographZodiac": partial(_cyclic, "子丑寅卯辰巳午未申酉戌亥"),
}  # fmt: skip


class _Level(NamedTuple):
    start: int
    format: str
    text: str
    restart: int  # The depth, from 1, that restarts it with those above; 0 if none does.
    is_decimal: bool
    has_gap: bool


class _List(NamedTuple):
    """A list: its own abstract list's id, its levels, and where it starts again, by depth."""

    base: str
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]


class _AbstractList(NamedTuple):
    levels: Mapping[int, _Level]
    style: str | None  # The style that names the list to use instead.


class _Style(NamedTuple):
    base: str
    number: str | None
    depth: str | None


class Numbering:
    """Numbers the paragraphs of a document, in their order."""

    def __init__(self) -> None:
        self._styles: dict[str, _Style] = {}
        self._nums: dict[str, XmlElement] = {}
        self._bases: dict[str, _AbstractList] = {}
        self._depths: dict[tuple[str, str], int] = {}  # By abstract list and style.
        self._lists: dict[str, _List | None] = {}
        self._counts: dict[str, list[int | None]] = {}
        self._started: set[str] = set()

    def add_part(self, root: XmlElement) -> None:
        """Take the definitions of a part, and count from the beginning in the next."""
        self._counts, self._started = {}, set()
        if root.name == "w:styles":
            for style in root.find_children("w:style"):
                number, depth = _number_and_depth(style)
                base = _value(style, "w:basedOn") or ""
                found = _Style(base, number, depth)
                self._styles.setdefault(style.attributes.get("w:styleId", ""), found)
        elif root.name == "w:numbering":
            for num in root.find_children("w:num"):
                self._nums[num.attributes.get("w:numId", "")] = num
            for base in root.find_children("w:abstractNum"):
                self._add_base(base.attributes.get("w:abstractNumId", ""), base)

    def _add_base(self, key: str, base: XmlElement) -> None:
        levels = {}
        for element in base.find_children("w:lvl"):
            depth, level = _level(element)
            if depth < _LEVELS:
                levels[depth] = level
                if style := _value(element, "w:pStyle"):
                    self._depths[key, style] = depth
        self._bases[key] = _AbstractList(levels, _value(base, "w:numStyleLink"))

    def label(self, paragraph: XmlElement) -> tuple[str, bool] | None:
        """Return the label of the next paragraph, and whether a gap follows it; None for one that
        is not numbered or has a bullet."""
        numbered = self._list_and_depth(paragraph)
        if numbered is None:
            return None
        number, here, depth = numbered
        level = here.levels[depth]
        counts = self._counts.setdefault(here.base, [None] * _LEVELS)
        if number not in self._started:
            self._started.add(number)
            for each in here.starts:
                counts[each] = None
        self._count(here, counts, depth)
        if level.format == "bullet":
            return None

        def write(place: re.Match[str]) -> str:
            above = int(place[1]) - 1
            if above > depth or above not in here.levels:
                return ""
            count = counts[above]
            shown = _start(here, above) if count is None else count
            kind = "decimal" if level.is_decimal else here.levels[above].format
            return _FORMATS.get(kind, str)(shown)

        return _PLACE.sub(write, level.text).strip(), level.has_gap

    def _count(self, here: _List, counts: list[int | None], depth: int) -> None:
        count = counts[depth]
        counts[depth] = _start(here, depth) if count is None else count + 1
        for deeper in range(depth + 1, _LEVELS):
            level = here.levels.get(deeper)
            if level is None or depth < level.restart:
                counts[deeper] = None

    def _list_and_depth(self, paragraph: XmlElement) -> tuple[str, _List, int] | None:
        style = _value(paragraph.find_child_or_null("w:pPr"), "w:pStyle") or ""
        own, own_depth = _number_and_depth(paragraph)
        number, style_depth = self._of_style(style)
        number = number if own is None else own
        here = self._find_list(number) if number else None
        if number is None or here is None:
            return None
        linked = self._depths.get((here.base, style))
        depth = _integer(own_depth, _integer(style_depth, 0) if linked is None else linked)
        return (number, here, depth) if depth in here.levels else None

    def _of_style(self, style: str) -> tuple[str | None, str | None]:
        """Return the list and the depth of a style or of those that it is based on."""
        number = depth = None
        for _ in range(_MAX_BASES):
            found = self._styles.get(style)
            if found is None or number is not None:
                break
            number = found.number
            depth = found.depth if depth is None else depth
            style = found.base
        return number, depth

    def _find_list(self, number: str, *, may_link: bool = True) -> _List | None:
        if number not in self._lists:
            self._lists[number] = self._read_list(number, may_link=may_link)
        return self._lists[number]

    def _read_list(self, number: str, *, may_link: bool) -> _List | None:
        num = self._nums.get(number)
        key = (_value(num, "w:abstractNumId") or "") if num else ""
        base = self._bases.get(key)
        if num is None or base is None:
            return None
        linked = self._styles.get(base.style or "")
        if linked and linked.number and may_link:
            return self._find_list(linked.number, may_link=False)
        levels, starts = dict(base.levels), {}
        for override in num.find_children("w:lvlOverride"):
            depth = _integer(override.attributes.get("w:ilvl"), 0)
            if depth not in levels:
                continue
            if level := override.find_child("w:lvl"):
                levels[depth] = _level(level)[1]
            if (start := _value(override, "w:startOverride")) is not None:
                starts[depth] = _integer(start, 0)
        return _List(key, levels, starts)


def _start(here: _List, depth: int) -> int:
    return here.starts[depth] if depth in here.starts else here.levels[depth].start


def _level(level: XmlElement) -> tuple[int, _Level]:
    """Return the depth of a level, and how it counts."""
    depth = _integer(level.attributes.get("w:ilvl"), 0)
    text = _value(level, "w:lvlText")
    legal = level.find_child("w:isLgl")
    return depth, _Level(
        start=_integer(_value(level, "w:start"), 0 if text else 1),
        format=_value(level, "w:numFmt") or "decimal",
        text=f"%{depth + 1}." if text is None else text[:_MAX_FORMAT],
        restart=_integer(_value(level, "w:lvlRestart"), depth),
        is_decimal=legal is not None and legal.attributes.get("w:val") not in {"0", "false"},
        has_gap=_value(level, "w:suff") != "nothing",
    )


def _number_and_depth(element: XmlElement) -> tuple[str | None, str | None]:
    """Return the list and the depth that a paragraph or a style names itself."""
    numbering = element.find_child_or_null("w:pPr").find_child_or_null("w:numPr")
    return _value(numbering, "w:numId"), _value(numbering, "w:ilvl")


def _value(element: XmlElement, name: str) -> str | None:
    value: str | None = element.find_child_or_null(name).attributes.get("w:val")
    return value


def _integer(text: str | None, default: int) -> int:
    return int(text) if text and _NUMBER.fullmatch(text) else default
