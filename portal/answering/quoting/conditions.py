"""Dates, years, versions and codes of a question, which an answer has or stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from portal.answering.quoting.questions import find_dates
from portal.text.characters.folding import fold

# A year or a code in the question has to match: another year's figure is not an answer.
_FIGURE = re.compile(
    r"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)|[a-z]+[-_]?\d[\w-]*|(?<![\d.])\d+\.\d+(?![\d.]|\s?[%元万])"
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
    found = []
    for text in texts:
        folded, dates = fold(text).text, {one.term for one in find_dates(text)}
        found.append({one for one in conditions if one.term in (dates if one.is_date else folded)})
    return found


def without(question: str, conditions: Iterable[Condition]) -> str:
    """Return a question without those of the conditions that are numbers, and what connects
    them: codes are names, which a question makes no sense without."""
    for one in sorted(conditions, key=lambda one: -one.start):
        if one.is_number:
            before = _BEFORE.sub("", question[: one.start])
            question = before + _AFTER.sub("", question[one.end :])
    return question
