"""Dates, years, versions, codes and names of a question, which an answer or its headings must have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.rules.kinds import is_word
from portal.answering.quoting.rules.kinds.patterns import CODE
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.language import detect_language

# A year or a code in the question has to match: another year's figure is not an answer.
_FIGURE = re.compile(
    rf"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)|(?<![a-z])(?!q[1-4](?![\da-z-])){CODE}"
    r"|(?<![\d.])\d+\.\d+(?![\d.]|\s?[%元万])"
    r"|(?<=\broom )\d{3,4}\b|(?<![\d.])\d{3,4}(?=\s?(?:会议室|教室|房间?|室|有没有|能坐))"
)
# Joel Fairbrother; in an English question Chinese words are names as well.
_NAME = re.compile(rf"[A-Z][a-zà-ÿ]{{2,}}|(?<![{HAN}])[{HAN}]{{2,4}}(?![{HAN}])")
_QUARTER = re.compile(
    r"(?<![a-z])q([1-4])(?![\da-z-])|第?([一二三四1-4])季度|\b(first|second|third|fourth) quarter\b"
)
# In the minutes of a quarter, what is said of the one before.
_LAST_QUARTER = re.compile(r"上个?季度|\b(?:last|previous) quarter\b")
_QUARTERS = {
    name: number
    for number, names in enumerate(("1 一 first", "2 二 second", "3 三 third", "4 四 fourth"), 1)
    for name in names.split()
}
# "Revenue was $4.8 million, up 18 percent on Q3 2025" says nothing of 2025.
_COMPARED = re.compile(
    r"\b(?:up|down|more|less|fewer|higher|lower|increased?|decreased?|r[io]se|fell|fall|grew|growth)\b"
    r"[^.;]{0,40}?\b(?:on|than|from|over|versus|vs|against|compared (?:to|with))\b[^.;,]{0,24}?\b20\d\d\b"
    rf"|[较比]\s?20\d\d年?[{HAN}]{{0,4}}季?度?"
)
_BEFORE = re.compile(r"\s*(?:\b(?:on|of|from|since|in)(?: the)?\s+|[在于])?\Z", re.IGNORECASE)
_AFTER = re.compile(r"\A(?:\s*(?:年|版(?!本))的?)?(?:[那这][次天场]|当天|的)?")


@dataclass(frozen=True, slots=True)
class Condition:
    """A date or figure of a question, and its position there."""

    term: str
    start: int
    end: int
    is_date: bool

    @property
    def is_number(self) -> bool:
        return self.is_date or self.term[0].isdigit()


def find_conditions(question: str) -> tuple[Condition, ...]:
    """Return the conditions of a question, in order."""
    dates = [Condition(one.term, one.start, one.end, True) for one in find_dates(question)]
    folded = fold(question)
    figures = [
        Condition(match.group(), *folded.original_span(*match.span()), is_date=False)
        for match in _FIGURE.finditer(folded.text)
    ]
    beside = [one for one in figures if not any(d.start <= one.start < d.end for d in dates)]
    return tuple(sorted((*dates, *beside), key=lambda one: one.start))


def met_by(conditions: Sequence[Condition], texts: Sequence[str]) -> list[set[Condition]]:
    """Return the conditions that each text meets."""
    spelled = {one: _spelled(one.term) for one in conditions if not one.is_date}
    found = []
    for text in texts:
        folded, dates = _COMPARED.sub("", fold(text).text), {one.term for one in find_dates(text)}
        found.append(
            {
                one
                for one in conditions
                if (one.term in dates if one.is_date else spelled[one].search(folded))
            }
        )
    return found


def _spelled(figure: str) -> re.Pattern[str]:
    """Return a pattern of a figure: P12 also as P-12, and not within P120, P12S or SP12."""
    if figure[0].isdigit():
        return re.compile(rf"(?<!\d){re.escape(figure)}(?!\d)")
    with_separator = re.sub(r"(?<=[a-z])[-_]?(?=\d)", "[-_ ]?", figure, count=1)
    return re.compile(rf"(?<![a-z]){with_separator}(?![a-z\d])")


def find_names(question: str) -> tuple[str, ...]:
    """Return the names in a question: capitalised words that no dictionary has, and in an English
    question Chinese words."""
    is_english = detect_language(question) == "en"
    return tuple(
        name
        for name in _NAME.findall(question)
        if (is_english if name[0] >= HAN[0] else not is_word(name))
    )


def find_quarters(text: str) -> frozenset[int]:
    """Return the quarters of a year that a text names: 1 to 4."""
    folded = _COMPARED.sub("", fold(text).text)
    named = {_QUARTERS[one[1] or one[2] or one[3]] for one in _QUARTER.finditer(folded)}
    if _LAST_QUARTER.search(folded):
        named |= {(one - 2) % 4 + 1 for one in named}
    return frozenset(named)


def without(question: str, conditions: Iterable[Condition]) -> str:
    """Return a question without the conditions that are numbers, and the words that connect them.
    Codes stay: they are names, and the question makes no sense without them."""
    for one in sorted(conditions, key=lambda one: -one.start):
        if one.is_number:
            before = _BEFORE.sub("", question[: one.start])
            question = before + _AFTER.sub("", question[one.end :])
    return question
