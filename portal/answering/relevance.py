"""How likely a source answers a question, judged by its statements.

Search gives its confidence in a chunk as a whole, before its statements are compared with the
question. A statement that has most of the question's words, and more of them than any statement of
the other sources, says more. The weights come from a logistic regression over the development sets
(`eval/fit_answers.py`); docs/answers.md shows how well they hold on sets they were not fitted to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from portal.answering.questions import Wanted, can_hold, find_wanted, without_asking
from portal.answering.statements import Statement, statements
from portal.domain.answering import Source
from portal.text.analyser import index_terms, query_terms
from portal.text.folding import fold
from portal.text.language import detect_language
from portal.text.scripts import HAN

# Weights of the fields of `Evidence`.
_CONFIDENCE, _SENTENCE, _AHEAD, _CONSTANT = 0.6, 4.11, 7.8, -3.12
# Across languages there are no words to compare. An even chance by search then becomes the lowest
# chance with which an answer is given, see `extractive.MIN_CHANCE`.
_ACROSS = math.log(0.2 / 0.8)
_MAX_CONFIDENCE = 0.999  # Beyond it log odds reflect rounding more than the source.

# A statement is read below its headings, under the title and after the statement before it: words
# there count as well, but less.
_IN_CONTEXT, _IN_STATEMENT_BEFORE = 0.6, 0.4
# A table row is read with its header.
_IN_HEADER = 0.9
# A word that all sources have tells less about any of them.
_COMMON_LOSES = 0.6
# How much of a question may be missing from the statement, and absent from the whole source, before
# the source is about the subject only. Fitted on the development sets against statements of the
# same source without the answer (docs/answers.md).
_MISSING, _ABSENT, _MAX_UNMET = 1.7, 4.8, 3.8
# Where another statement has more of the question but not the kind of answer, one with much less
# of it only happens to have that kind.
_NEAR_BEST = 0.8
# A year or a code that the question names has to be there: another year's figure is no answer.
_MUST_MATCH = re.compile(r"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)|[a-z]+[-_]?\d[\w-]*")
_FIRST_HAN = HAN[0]
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement, the share of the question's words that it has, and whether it can hold an
    answer of the kind that is wanted."""

    statement: Statement
    share: float
    can_answer: bool


@dataclass(frozen=True, slots=True)
class _ReadSource:
    """The terms of the question in a source's title and in each of its statements."""

    source: Source
    title: frozenset[str]
    statements: tuple[tuple[Statement, frozenset[str], frozenset[str]], ...]

    @classmethod
    def read(cls, source: Source, terms: Sequence[str]) -> _ReadSource:
        found = statements(source)
        return cls(
            source,
            title=_present(terms, source.title),
            statements=tuple(
                (one, _present(terms, source.text[one.start : one.end]),
                 _present(terms, one.context))
                for one in found
            ),
        )  # fmt: skip

    @property
    def terms(self) -> frozenset[str]:
        return self.title.union(*(here | above for _, here, above in self.statements))


@dataclass(frozen=True, slots=True)
class Judged:
    """A source, its statements, and two chances in [0, 1]: that it answers the question, and that
    it is at least about it."""

    source: Source
    chance: float
    on_topic: float
    candidates: tuple[Candidate, ...]
    same_language: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a source: search's confidence as log odds, the share of the question's words
    in its best statement, and how far that is ahead of the other sources' best."""

    odds: float
    best: float
    ahead: float
    same_language: bool
    candidates: tuple[Candidate, ...]

    @property
    def chance(self) -> float:
        if self.same_language:
            total = _CONSTANT + _CONFIDENCE * self.odds
            total += _SENTENCE * self.best + _AHEAD * self.ahead
        else:
            total = self.odds + _ACROSS
        return 1 / (1 + math.exp(-total))


def judge(question: str, language: str, sources: Sequence[Source]) -> list[Judged]:
    """Judge every source, in the order given."""
    return [
        Judged(
            source,
            chance=one.chance if any(each.can_answer for each in one.candidates) else 0.0,
            on_topic=one.chance,
            candidates=one.candidates,
            same_language=one.same_language,
        )
        for source, one in zip(sources, evidence(question, language, sources), strict=True)
    ]


def evidence(question: str, language: str, sources: Sequence[Source]) -> list[Evidence]:
    """Return what speaks for each source, in the order given."""
    terms = _question_terms(question)
    named = frozenset(_question_terms(without_asking(question)))
    read = [_ReadSource.read(source, (*terms, *(named - set(terms)))) for source in sources]
    weights = _weights(terms, [one.terms for one in read])
    candidates = [
        _candidates(
            question, one, weights, named, same_language=_same_language(one.source, language)
        )
        for one in read
    ]
    best = [max((one.share for one in found), default=0.0) for found in candidates]
    return [
        Evidence(
            odds=_odds(source.confidence),
            best=best[place],
            ahead=best[place] - max(best[:place] + best[place + 1 :], default=0.0),
            same_language=_same_language(source, language),
            candidates=candidates[place],
        )
        for place, source in enumerate(sources)
    ]


def _question_terms(question: str) -> tuple[str, ...]:
    """Return the terms of a question. Single Chinese characters that stand together are one term:
    年 and 假 alone say little about 年假."""
    folded = fold(question).text
    terms: list[str] = []
    for term in query_terms(question):
        joined = f"{terms[-1]}{term}" if terms else ""
        is_single = len(term) == 1 and term >= _FIRST_HAN
        if is_single and len(joined) == _PAIR and joined[0] >= _FIRST_HAN and joined in folded:
            terms[-1] = joined
        else:
            terms.append(term)
    return tuple(dict.fromkeys(terms))


def _odds(confidence: float) -> float:
    bounded = min(_MAX_CONFIDENCE, max(1 - _MAX_CONFIDENCE, confidence))
    return math.log(bounded / (1 - bounded))


def _same_language(source: Source, language: str) -> bool:
    return (source.language or detect_language(source.text)) == language


def _weights(terms: Sequence[str], present: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weigh the words of the question: long ones more, words that all sources have less."""
    weights = {}
    for term in terms:
        holders = sum(term in has for has in present)
        common = (holders - 1) / (len(present) - 1) if holders and len(present) > 1 else 0.0
        weights[term] = _length_weight(term) * (1 - _COMMON_LOSES * common)
    return weights


def _length_weight(term: str) -> float:
    if term[0] >= _FIRST_HAN:
        return 0.5 if len(term) == 1 else min(len(term), 4) / 2
    return math.sqrt(min(len(term), 8)) / 2


def _candidates(
    question: str,
    read: _ReadSource,
    weights: dict[str, float],
    named: frozenset[str],
    *,
    same_language: bool,
) -> tuple[Candidate, ...]:
    total = sum(map(_length_weight, weights)) or 1.0
    wanted = find_wanted(question)
    required = frozenset(_MUST_MATCH.findall(fold(question).text))
    absent = _share_without(named, read.terms)
    in_title = dict.fromkeys(read.title, _IN_CONTEXT)
    before: dict[str, float] = {}
    text_before = ""
    found = []
    for statement, here, above in read.statements:
        text = read.source.text[statement.start : statement.end]
        in_context = dict.fromkeys(above, _IN_HEADER if statement.header else _IN_CONTEXT)
        counted = before | in_title | in_context | dict.fromkeys(here, 1.0)
        missing = _share_without(named, here | above | read.title)
        is_met = _MISSING * missing + _ABSENT * absent <= _MAX_UNMET
        known = fold(f"{read.source.title} {statement.context} {text_before} {text}").text
        found.append(
            Candidate(
                statement,
                share=sum(weights.get(term, 0.0) * part for term, part in counted.items()) / total,
                can_answer=(is_met or not same_language)
                and all(one in known for one in required)
                and can_hold(wanted, _spelled_out(statement, text), question),
            )
        )
        before = dict.fromkeys(here, _IN_STATEMENT_BEFORE)
        text_before = text
    least = _NEAR_BEST * max((one.share for one in found), default=0.0)
    if wanted is Wanted.ANYTHING or not same_language:
        return tuple(found)
    return tuple(
        replace(one, can_answer=one.can_answer and one.share >= least) for one in found
    )  # fmt: skip


def _share_without(named: frozenset[str], terms: frozenset[str]) -> float:
    """Return the share of what the question names that is not among `terms`."""
    total = sum(map(_length_weight, named)) or 1.0
    return sum(map(_length_weight, named - terms)) / total


def _spelled_out(statement: Statement, text: str) -> str:
    """Return a table row with the header of each cell, other statements as they are."""
    if not statement.header:
        return text
    pairs = zip(statement.header, statement.cells, strict=False)
    return "; ".join(f"{name} {cell}" for name, cell in pairs)


def _present(terms: Sequence[str], text: str) -> frozenset[str]:
    """Return the terms of the question that a text has. Chinese words count wherever they stand,
    because next to other characters they may be segmented differently."""
    known = set(index_terms(text).split())
    folded = fold(text).text
    return frozenset(
        term
        for term in terms
        if term in known or (len(term) > 1 and term[0] >= _FIRST_HAN and term in folded)
    )
