"""Whether a passage answers a question, by its sentences.

Search says how confident it is of a passage as a whole, before anyone has looked at its sentences.
One sentence that holds most of the question's words, and holds more of them than any sentence of
the rival passages, says more. The weights are a logistic regression's over the development sets
(`eval/fit_answers.py`); docs/answers.md tells how well they hold where they were not fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from portal.domain.answering import Source
from portal.text.analyser import index_terms, query_terms
from portal.text.folding import fold
from portal.text.language import detect_language
from portal.text.scripts import HAN
from portal.text.sentences import sentence_spans

# Weights of what `Evidence` holds.
_CONFIDENCE, _SENTENCE, _AHEAD, _CONSTANT = 0.6, 4.11, 7.8, -3.12
# Across languages there are no words to go by. Even odds of search become the least chance with
# which an answer is given, see `extractive.LEAST_CHANCE`.
_ACROSS = math.log(0.2 / 0.8)
_SUREST = 0.999  # Beyond it log odds say more of rounding than of the passage.

# A sentence is read after the one before it and under the title: what these name counts, but less.
_IN_TITLE, _IN_SENTENCE_BEFORE = 0.6, 0.4
# A word that all passages have tells less of them apart.
_COMMON_LOSES = 0.6
_FIRST_HAN = HAN[0]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters `start` to `end` of a source's text, and the share of the question in them."""

    start: int
    end: int
    share: float


@dataclass(frozen=True, slots=True)
class _Read:
    """Which of the question's terms stand in a source's title and in each of its sentences."""

    title: frozenset[str]
    sentences: tuple[tuple[tuple[int, int], frozenset[str]], ...]

    @classmethod
    def of(cls, source: Source, terms: Sequence[str]) -> _Read:
        spans = sentence_spans(source.text)
        return cls(
            title=_present(terms, source.title),
            sentences=tuple((span, _present(terms, source.text[slice(*span)])) for span in spans),
        )

    @property
    def terms(self) -> frozenset[str]:
        return self.title.union(*(here for _, here in self.sentences))


@dataclass(frozen=True, slots=True)
class Judged:
    """A source, its sentences, and the chance in [0, 1] that it answers the question."""

    source: Source
    chance: float
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a source: search's confidence as log odds, the question's words in its best
    sentence, and how far that is ahead of the other sources' best."""

    odds: float
    best: float
    ahead: float
    same_language: bool
    sentences: tuple[Sentence, ...]

    @property
    def chance(self) -> float:
        if self.same_language:
            total = _CONSTANT + _CONFIDENCE * self.odds
            total += _SENTENCE * self.best + _AHEAD * self.ahead
        else:
            total = self.odds + _ACROSS
        return 1 / (1 + math.exp(-total))


def judge(question: str, language: str, sources: Sequence[Source]) -> list[Judged]:
    """Every source, in the order given."""
    return [
        Judged(source, one.chance, one.sentences)
        for source, one in zip(sources, evidence(question, language, sources), strict=True)
    ]


def evidence(question: str, language: str, sources: Sequence[Source]) -> list[Evidence]:
    """What speaks for each source, in the order given."""
    terms = query_terms(question)
    read = [_Read.of(source, terms) for source in sources]
    weights = _weights(terms, [one.terms for one in read])
    sentences = [_sentences(one, weights) for one in read]
    best = [max((one.share for one in found), default=0.0) for found in sentences]
    return [
        Evidence(
            odds=_odds(source.confidence),
            best=best[place],
            ahead=best[place] - max(best[:place] + best[place + 1 :], default=0.0),
            same_language=_same_language(source, language),
            sentences=sentences[place],
        )
        for place, source in enumerate(sources)
    ]


def _odds(confidence: float) -> float:
    bounded = min(_SUREST, max(1 - _SUREST, confidence))
    return math.log(bounded / (1 - bounded))


def _same_language(source: Source, language: str) -> bool:
    return (source.language or detect_language(source.text)) == language


def _weights(terms: Sequence[str], present: Sequence[frozenset[str]]) -> dict[str, float]:
    """What each word tells: long ones more, those of all passages less."""
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


def _sentences(read: _Read, weights: dict[str, float]) -> tuple[Sentence, ...]:
    total = sum(map(_length_weight, weights)) or 1.0
    in_title = dict.fromkeys(read.title, _IN_TITLE)
    before: dict[str, float] = {}
    found = []
    for (start, end), here in read.sentences:
        counted = before | in_title | dict.fromkeys(here, 1.0)
        share = sum(weights[term] * part for term, part in counted.items()) / total
        found.append(Sentence(start, end, share))
        before = dict.fromkeys(here, _IN_SENTENCE_BEFORE)
    return tuple(found)


def _present(terms: Sequence[str], text: str) -> frozenset[str]:
    """Terms of the question that the text has; Chinese words wherever they stand, for beside
    other neighbours they may be cut differently."""
    known = set(index_terms(text).split())
    folded = fold(text).text
    return frozenset(
        term
        for term in terms
        if term in known or (len(term) > 1 and term[0] >= _FIRST_HAN and term in folded)
    )
