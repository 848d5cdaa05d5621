"""Days of the week: the hours from Monday to Friday do not say when to come on Saturday."""

from __future__ import annotations

import re

from portal.text.characters.folding import fold

_ORDER = {day: place for place, day in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_ORDER |= {day: place for place, day in enumerate("一二三四五六日")} | {"天": 6}
_HOLIDAY = 7
# 每周三次 and 一周五天 name no day.
_HAN_DAY = (
    r"(?:周|星期|礼拜)([一二三四五六日天])"
    r"(?![次天个节回般致定轮百千万元人]|十[一二三四五六七八九]?个?(?:小时|天|元|人|分钟|次))"
)
# "Sat 9:00" and "Mon to Fri", but not "she sat down" and "sun cream".
_NAME = (
    r"(mon|tue|wed|thu|fri|sat|sun)"
    r"(?:(?:s|nes|rs|ur)?days?\b|(?:s|rs?)?\b(?=\.?\s*(?:[\d–/,;&|~-]|\Z|and\b|to\b|through\b)))"
)
_DAY = rf"(?:{_HAN_DAY}|\b{_NAME})"
_SPAN = re.compile(
    rf"{_DAY}(?:\s*(?:至|到|-|–|—|~|to|through)\s*(?:周|星期|礼拜)?(?:([一二三四五六日天])(?![次个])"
    r"|(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?s?\b))?"
)
# Capitalised only: "the sun" is not a day.
_SHORT = re.compile(
    r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|rs?)?\b\.?(?=\s*(?:[\d–/,;&|-]|\Z|and\b|to\b))"
)
_LONG = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_GROUPS = (
    (re.compile(r"周末|双休日|休息日|\bweekends?\b"), {5, 6}),
    # "Within 3 working days" is a duration.
    (re.compile(r"(?<![\d个两三五十 ])工作日|\bweekdays?\b"), {0, 1, 2, 3, 4}),
    (
        re.compile(r"节假日|公[众共]假[日期]|法定假日|\b(?:public|bank|statutory) holidays?\b"),
        {_HOLIDAY},
    ),
    (re.compile(r"每[天日]|天天|全天|全年|\bdaily\b|\b(?:every|each|any) day\b"), set(range(8))),
)


def find_weekdays(text: str) -> frozenset[int]:
    """Return the days of the week that a text names, Monday as 0, and public holidays as 7."""
    folded = fold(text).text
    found = {day for pattern, days in _GROUPS if pattern.search(folded) for day in days}
    for match in _SPAN.finditer(folded):
        first = _ORDER[match[1] or match[2]]
        last = _ORDER[match[3] or match[4] or match[1] or match[2]]
        found |= {day % 7 for day in range(first, last + 1 + 7 * (last < first))}
    return frozenset(found)


def with_long_weekdays(text: str) -> str:
    """Return a text with "Saturday" for the "Sat" of a timetable."""
    return _SHORT.sub(lambda match: _LONG[_ORDER[match[1].lower()]], text)
