"""The probability that a statement answers a question.

A statement is an answer when it covers everything asked: each content word of the question by the
same word, or by one with its meaning, and the wanted kind of answer. The weights for the question's
own language come from a logistic regression over the questions of eval/data/team/tune.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from portal.answering.quoting.events import lacks_event
from portal.answering.quoting.kinds import Wanted, can_hold, find_wanted
from portal.answering.quoting.meaning import Likeness, Meaning, read_meaning
from portal.answering.quoting.questions import Word, asks_for_list, find_dates, telling_words
from portal.answering.quoting.ranges import has_figure, rows_in_range
from portal.answering.quoting.statements import Statement, statements
from portal.domain.answering import Source
from portal.domain.embedding import Embedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.text.analyser import index_terms
from portal.text.folding import fold
from portal.text.language import detect_language

# A statement's context is its headings, the title and the statement before it: matches there count
# as well, but less.
_IN_STATEMENT, _IN_CONTEXT, _IN_TITLE, _IN_STATEMENT_BEFORE = 1.0, 0.9, 0.75, 0.5
# The cosine above which another word begins to match, and the further increase at which it matches
# as well as it can. Across languages tokens are less similar.
_LIKE_SAME, _LIKE_ACROSS = (0.3, 0.5), (0.1, 0.45)
_MAX_BY_MEANING = 0.9
# Maximum of tokens in all statements compared by meaning: about a tenth of a second.
_MAX_TOKENS = 420
_MAX_COMPARED, _MAX_COMPARED_ACROSS = 10, 18
_HAN_TOKENS, _OTHER_TOKENS = 0.7, 0.27
# The chance from which a statement is quoted, and the share of the question's words in a source on
# its subject.
MIN_CHANCE = 0.55
MIN_ON_TOPIC = 0.28
_MAX_CONFIDENCE = 0.999  # Beyond it log odds reflect rounding more than the source.
# Slope and constant of an answer's confidence over the log odds of its chance, by whether it is in
# the question's language. eval/fit_answer_confidence.py fits them; in the same language the chance
# itself is as good.
CONFIDENCE = {True: (1.0, 0.0), False: (0.6, -0.75)}
# A year or a code in the question has to match: another year's figure is not an answer.
_MUST_MATCH = re.compile(
    r"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)|[a-z]+[-_]?\d[\w-]*|(?<![\d.])\d+\.\d+(?![\d.]|\s?[%元万])"
)
# A place in the question has to be in the source, by its name or one with the same meaning.
_MIN_PLACE = 0.4
_OF_EVENTS = (Wanted.PERSON, Wanted.PLACE, Wanted.TIME)
_FIRST_HAN = "\u4e00"
_UNIT = re.compile(r"[(（]([^)）]{1,12})[)）]")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The features of a statement, each in [0, 1] except `odds`. `met` is the weighted share of the
    question's words that it matches; `least` the match of the word matched worst; `own` the share
    matched without its context; `focus` how many of its own words are the question's. `is_compared`
    is False when it is in another language and the model could not compare it. `odds` are the
    search confidence of its source, as log odds."""

    odds: float
    met: float
    least: float
    own: float
    focus: float
    same_language: bool
    is_compared: bool = True

    @property
    def values(self) -> tuple[float, ...]:
        """Return the features in the order of the weights; the last is the constant."""
        return (self.odds, self.met, self.least, self.own, self.focus, 1.0)


# Weights of `Evidence.values` in the question's language and in another one.
_SAME_LANGUAGE = (0.15, 3.6, 0.8, 1.9, 0.0, -2.9)
_ACROSS_LANGUAGES = (0.4, 7.0, 1.0, 3.0, 0.0, -4.8)

# A search confidence of one half becomes the lowest chance with which an answer is given.
_BY_SEARCH_ALONE = (1.0, 0.0, 0.0, 0.0, 0.0, math.log(MIN_CHANCE / (1 - MIN_CHANCE)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement and the chance in [0, 1] that it answers, if it is of the wanted kind, which
    `holds` says. `apart` is its match of the question without a table's header."""

    statement: Statement
    evidence: Evidence
    chance: float
    holds: bool
    apart: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A source and its statements, in order."""

    source: Source
    candidates: tuple[Candidate, ...]
    same_language: bool

    @property
    def chance(self) -> float:
        """Return the chance that the source answers the question."""
        return max((one.chance for one in self.candidates if one.holds), default=0.0)

    @property
    def is_compared(self) -> bool:
        """Tell whether the source could be compared with the question, by words or by the model."""
        return self.same_language or any(one.evidence.is_compared for one in self.candidates)

    @property
    def on_topic(self) -> float:
        """Return the share of the question that the source matches, as an answer or not."""
        return max((one.evidence.met for one in self.candidates), default=0.0)


def judge(
    question: str, language: str, sources: Sequence[Source], embedder: Embedder | None = None
) -> list[Judged]:
    """Judge every source, in the order given."""
    words, wanted = telling_words(question), find_wanted(question)
    read = [_ReadSource(source, question, words, wanted, language) for source in sources]
    _compare(read, question, words, embedder)
    return [one.judged(question) for one in read]


class _ReadSource:
    """A source's statements, with the match of each for each word of the question."""

    def __init__(
        self, source: Source, question: str, words: Sequence[Word], wanted: Wanted, language: str
    ) -> None:
        self.source = source
        self.question = question
        self.words = words
        self.wanted = wanted
        self.compared: set[int] = set()
        self.same_language = (source.language or detect_language(source.text)) == language
        self.statements = statements(source)
        self.texts = [spelled_out(one, source.text) for one in self.statements]
        self.holds = [
            can_hold(wanted, with_units(one) or text, question)
            for one, text in zip(self.statements, self.texts, strict=True)
        ]
        self.contexts = [
            "\n".join(filter(None, (source.title, one.context, " ".join(one.header))))
            for one in self.statements
        ]
        self.own = _lexical(words, self.texts) * _IN_STATEMENT
        self.apart = _lexical(
            words,
            [
                " | ".join(one.cells) or text
                for one, text in zip(self.statements, self.texts, strict=True)
            ],
        )
        above = _lexical(words, self.contexts) * _IN_CONTEXT
        title = _lexical(words, [source.title]) * _IN_TITLE
        above = np.where(above > title, np.where(title > 0, _IN_TITLE, above), title)
        before = np.zeros_like(self.own)
        if len(self.statements) > 1:
            follows = np.array(
                [
                    b.context == a.context
                    for a, b in zip(self.statements, self.statements[1:], strict=False)
                ]
            )
            before[1:] = self.own[:-1] * _IN_STATEMENT_BEFORE * follows[:, None]
        self.met = np.maximum.reduce([self.own, np.broadcast_to(above, self.own.shape), before])
        self.weights = np.array([word.weight for word in words], np.float32)

    def promise(self, place: int) -> tuple[bool, float, float]:
        """Return how much comparing a statement promises: first those of the wanted kind."""
        shared = _shared_signs(self.question, f"{self.contexts[place]} {self.texts[place]}")
        return self.holds[place], _mean(self.met[place], self.weights), shared

    def take_likeness(self, place: int, own: Likeness, above: Likeness) -> None:
        """Add the matches by meaning."""
        self.compared.add(place)
        low, width = _LIKE_SAME if self.same_language else _LIKE_ACROSS
        by_own = np.clip((own - low) / width, 0, _MAX_BY_MEANING)
        by_context = np.clip((above - low) / width, 0, _MAX_BY_MEANING) * _IN_CONTEXT
        self.own[place] = np.maximum(self.own[place], by_own)
        self.met[place] = np.maximum.reduce([self.met[place], by_own, by_context])

    def _focus(self, place: int) -> float:
        """Return how much of a statement is about the question."""
        # A row counts by its first cell and its best matching column.
        statement = self.statements[place]
        if not statement.header:
            return _focus(self.texts[place], self.words)
        key = statement.cells[0] if statement.cells else ""
        return max(
            _focus(
                f"{name} {key if any(w.text in fold(key).text for w in self.words) else ''}",
                self.words,
            )
            for name in statement.header
        )

    def judged(self, question: str) -> Judged:
        asked = fold(question).text
        required = frozenset(_MUST_MATCH.findall(asked))
        in_range = rows_in_range(question, self.statements)
        for place in in_range or ():
            # A number of the question is in the row's range.
            for column, word in enumerate(self.words):
                if has_figure(word.text):
                    self.own[place, column] = self.met[place, column] = _IN_STATEMENT
        lacks_place = any(
            self.met[:, column].max(initial=0.0) < _MIN_PLACE
            for column, word in enumerate(self.words)
            if word.is_place
        )
        # Its heading and introduction say what a whole list is.
        asks_list = asks_for_list(question)
        in_list = [asks_list and one.group is not None and not one.cells for one in self.statements]
        own = np.where(np.array(in_list, bool)[:, None], self.met, self.own)
        candidates = []
        for place, statement in enumerate(self.statements):
            evidence = Evidence(
                odds=_odds(self.source.confidence),
                met=_mean(self.met[place], self.weights),
                least=float(self.met[place].min()) if len(self.words) else 0.0,
                own=_mean(own[place], self.weights),
                focus=self._focus(place),
                same_language=self.same_language,
                is_compared=place in self.compared,
            )
            text = self.texts[place]
            known = fold(f"{self.contexts[place]} {text}").text
            before = fold(self.texts[place - 1]).text if place else ""
            holds = (
                self.holds[place]
                and (not required or any(one in known or one in before for one in required))
                and not lacks_place
                and not (self.wanted in _OF_EVENTS and lacks_event(asked, known))
                and (in_range is None or statement.group is None or place in in_range)
            )
            apart = _mean(self.apart[place], self.weights)
            candidates.append(Candidate(statement, evidence, _chance(evidence), holds, apart))
        return Judged(self.source, tuple(candidates), self.same_language)


def _compare(
    read: Sequence[_ReadSource], question: str, words: Sequence[Word], embedder: Embedder | None
) -> None:
    """Compare by meaning the statements that do not have all words of the question."""
    places = [
        (one, place)
        for one in read
        for place in range(len(one.statements))
        if float(one.met[place].min(initial=1.0)) < _IN_TITLE
    ]
    if not places:
        return
    places.sort(
        key=lambda pair: (pair[0].promise(pair[1]), pair[0].source.confidence), reverse=True
    )
    near = [pair for pair in places if pair[0].same_language][:_MAX_COMPARED]
    far = [pair for pair in places if not pair[0].same_language]
    far.sort(key=lambda pair: (pair[0].holds[pair[1]], pair[0].source.confidence), reverse=True)
    far = far[:_MAX_COMPARED_ACROSS]
    if (meaning := read_meaning(embedder, question, words)) is None:
        return
    try:
        _take(meaning, near)
        _take(meaning, far)
    except (EmbedderUnavailable, InvalidEmbedding):
        return


def _take(meaning: Meaning, places: Sequence[tuple[_ReadSource, int]]) -> None:
    texts: list[str] = []
    tokens = 0.0
    for one, place in places:
        tokens += _tokens(one.texts[place])
        if texts and tokens > _MAX_TOKENS:
            break
        texts.append(one.texts[place])
    contexts = list(dict.fromkeys(one.contexts[place] for one, place in places[: len(texts)]))
    found = meaning.likeness([*texts, *contexts])
    for row, (one, place) in enumerate(places[: len(texts)]):
        above = found[len(texts) + contexts.index(one.contexts[place])]
        one.take_likeness(place, found[row], above)


def _shared_signs(question: str, text: str) -> float:
    """Return the share of the question's Han characters and letter triples that a text has: words
    of one root, such as 结婚 and 婚假, share some."""
    asked = _signs(question)
    return len(asked & _signs(text)) / max(1, len(asked))


def _signs(text: str) -> set[str]:
    folded = fold(text).text
    triples = (folded[place : place + 3] for place in range(len(folded) - 2))
    han = {sign for sign in folded if sign >= _FIRST_HAN}
    return han | {each for each in triples if each.isalpha() and each.isascii()}


def _tokens(text: str) -> float:
    """Estimate the number of tokens in a text."""
    han = sum(sign >= "\u4e00" for sign in text)
    return han * _HAN_TOKENS + (len(text) - han) * _OTHER_TOKENS


def _chance(evidence: Evidence) -> float:
    if evidence.same_language:
        weights = _SAME_LANGUAGE
    else:
        weights = _ACROSS_LANGUAGES if evidence.is_compared else _BY_SEARCH_ALONE
    total = sum(weight * value for weight, value in zip(weights, evidence.values, strict=True))
    return 1 / (1 + math.exp(-total))


def as_confidence(chance: float, *, same_language: bool) -> float:
    """Return how often an answer is right whose best statement has this chance."""
    slope, constant = CONFIDENCE[same_language]
    return 1 / (1 + math.exp(-slope * _odds(chance) - constant))


def _mean(met: Likeness, weights: Likeness) -> float:
    return float(met @ weights / weights.sum()) if len(weights) else 0.0


def _odds(confidence: float) -> float:
    bounded = min(_MAX_CONFIDENCE, max(1 - _MAX_CONFIDENCE, confidence))
    return math.log(bounded / (1 - bounded))


def spelled_out(statement: Statement, text: str) -> str:
    """Return a table row with the header of each cell, other statements as they are."""
    if not statement.cells:
        return text[statement.start : statement.end]
    if not statement.header:
        return " | ".join(statement.cells)
    pairs = zip(statement.header, statement.cells, strict=False)
    return "; ".join(f"{name}: {cell}" for name, cell in pairs)


def _focus(text: str, words: Sequence[Word]) -> float:
    own = telling_words(text)
    total = sum(word.weight for word in own)
    asked = " ".join(word.text for word in words)
    terms = {word.term for word in words}
    return (
        sum(
            word.weight
            for word in own
            if word.term in terms or (word.is_han and word.text in asked)
        )
        / total
        if total
        else 0.0
    )


def with_units(statement: Statement) -> str:
    """Return each cell of a table row before its header, which may name the unit: "600 元 价格".
    Empty for other statements."""
    return "; ".join(
        f"{cell} {' '.join(_UNIT.findall(name))} {name}"
        for name, cell in zip(statement.header, statement.cells, strict=False)
    )


def _lexical(words: Sequence[Word], texts: Sequence[str]) -> Likeness:
    """Return which words each text has: (texts, words) of 0 and 1."""
    # Chinese words match as substrings, because next to other characters they may be segmented
    # differently.
    found = np.zeros((len(texts), len(words)), np.float32)
    for row, text in enumerate(texts):
        terms = {*index_terms(text).split(), *(one.term for one in find_dates(text))}
        folded = fold(text).text
        for column, word in enumerate(words):
            found[row, column] = word.term in terms or (
                word.is_han and len(word.text) > 1 and word.text in folded
            )
    return found
