"""Dates, years, versions, codes and names of a question, which an answer or its headings must have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.answering.figures import counted
from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.rules.comparisons import without_comparisons
from portal.answering.quoting.rules.kinds import is_word
from portal.answering.quoting.rules.kinds.patterns import CODE, COUNTERS, CURRENCY, MEASURE_UNIT
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.language import detect_language

# 第三条 and 第3条; 第三条线 is something else.
_HAN_NUMBER = "[零〇一二三四五六七八九十百千两]{1,7}"
_ARTICLE = rf"第(?:\d{{1,4}}|{_HAN_NUMBER})[条章节款]"
_COUNTED = re.compile(f"(?<=第){_HAN_NUMBER}(?=[条章节款])")
# A year or a code in the question has to match: another year's figure is not an answer.
_FIGURE = re.compile(
    rf"(?<![\d$£€¥])(?:1[6-9]|20)\d\d(?!\d|\s?(?:{CURRENCY}|{MEASURE_UNIT}|[{COUNTERS}]))|(?<![a-z])(?!q[1-4](?![\da-z-])){CODE}"
    r"|(?<![\d.])\d+\.\d+(?![\d.]|\s?[%元万])"
    rf"|{_ARTICLE}(?=[说讲写规约关怎有是的里中和与及、,?]|\s|\Z)"
    r"|(?<=\broom )\d{3,4}\b|(?<![\d.])\d{3,4}(?=\s?(?:会议室|教室|房间?|室|有没有|能坐))"
)
# Joel Fairbrother; in an English question Chinese words are names as well.
_NAME = re.compile(rf"[A-Z][a-zà-ÿ]{{2,}}|(?<![{HAN}])[{HAN}]{{2,4}}(?![{HAN}])")
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

    @property
    def is_article(self) -> bool:
        return self.term.startswith("第")


def find_conditions(question: str) -> tuple[Condition, ...]:
    """Return the conditions of a question, in order."""
    dates = [Condition(one.term, one.start, one.end, True) for one in find_dates(question)]
    folded = fold(question)
    figures = [
        Condition(_with_digits(match.group()), *folded.original_span(*match.span()), is_date=False)
        for match in _FIGURE.finditer(folded.text)
    ]
    beside = [one for one in figures if not any(d.start <= one.start < d.end for d in dates)]
    return tuple(sorted((*dates, *beside), key=lambda one: one.start))


def met_by(conditions: Sequence[Condition], texts: Sequence[str]) -> list[set[Condition]]:
    """Return the conditions that each text meets."""
    spelled = {one: _spelled(one.term) for one in conditions if not one.is_date}
    found = []
    for text in texts:
        folded = _with_digits(without_comparisons(fold(text).text))
        dates = {one.term for one in find_dates(text)}
        found.append(
            {
                one
                for one in conditions
                if (one.term in dates if one.is_date else spelled[one].search(folded))
            }
        )
    return found


def with_numerals_of(question: str, text: str) -> str:
    """Return a question with 第3条 as 第三条 if that is how the text writes it."""
    if not re.search(_ARTICLE, question):
        return question
    written = {_with_digits(one): one for one in re.findall(_ARTICLE, text)}
    return re.sub(_ARTICLE, lambda match: written.get(_with_digits(match[0]), match[0]), question)


def _with_digits(text: str) -> str:
    """Return a text with the numbers of articles and chapters in digits: 第3条."""
    return _COUNTED.sub(lambda match: counted(match[0]), text)


def _spelled(figure: str) -> re.Pattern[str]:
    """Return a pattern for a figure: P12 also as P-12, and not within P120, P12S or SP12."""
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


def without(question: str, conditions: Iterable[Condition]) -> str:
    """Return a question without the conditions that are numbers, and without the words that connect
    them. Codes stay: they are names, and the question makes no sense without them."""
    for one in sorted(conditions, key=lambda one: -one.start):
        if one.is_number:
            before = _BEFORE.sub("", question[: one.start])
            question = before + _AFTER.sub("", question[one.end :])
    return question
