"""The probability that a statement answers a question.

The embedding model reads question and statement together (`portal.embeddings.e5.reading`); its log
odds are combined with the words that both share and with whether the statement has the wanted kind
of answer. Another year, code or range than the question's excludes it. Without such a model shared
words decide, and a statement without the wanted kind of answer is excluded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np

from portal.answering.quoting.conditions import (
    Condition,
    find_conditions,
    find_names,
    find_quarters,
    met_by,
    without,
)
from portal.answering.quoting.events import has_another_event, lacks_event
from portal.answering.quoting.evidence import NO_STATEMENT, Evidence, chance_of, odds_of
from portal.answering.quoting.kinds import WITH_SIGNS, Wanted, can_hold, find_wanted
from portal.answering.quoting.matching import meanings, shares_of_words, weighted_means
from portal.answering.quoting.negation import (
    asks_denied,
    denies,
    is_denial,
    is_open,
    says_denied,
)
from portal.answering.quoting.phrasing import (
    as_read,
    context_of,
    spelled_out,
    with_units,
    without_addresses,
)
from portal.answering.quoting.questions import (
    Word,
    find_dates,
    telling_words,
    without_name,
    without_number_words,
)
from portal.answering.quoting.ranges import has_figure, has_other_figure, rows_in_range
from portal.answering.quoting.statements import Statement, is_label, statements
from portal.answering.quoting.weekdays import find_weekdays
from portal.domain.answering import Source
from portal.domain.embedding import StatementReader
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.text.characters.folding import fold
from portal.text.language import detect_language

# Words in a statement's headings, table header or introduction count as well, but less; those of
# the document's title less still.
_IN_CONTEXT, _IN_TITLE = 0.9, 0.75
# The max numbers of statements that are compared with the question, since a table of short rows has
# hundreds, and of the nearest that the model reads with it: in its language a tenth of a second, in
# the other, where words help less to choose, two. There nearness adds to what the model reads.
_OWN, _ACROSS = (40, 10, 0.0), (64, 16, 7.0)
# What shared words and the rank of the source add to the nearness of a statement.
_WORDS_WEIGHT, _SEARCH_WEIGHT, _KIND_WEIGHT = 0.08, 0.03, 0.05
# The chance from which a statement is quoted, and the share of the question's words in a source on
# its subject.
MIN_CHANCE = 0.5
MIN_ON_TOPIC = 0.28
# How much the lack of an unmistakable kind of answer counts, beside 1 for having it.
_WITHOUT_SIGNS = -2.0
_OF_EVENTS = (Wanted.PERSON, Wanted.PLACE, Wanted.TIME)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement and its chance to answer: 0 if rules exclude it or the model did not read it."""

    statement: Statement
    evidence: Evidence
    chance: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A source and its statements, in order."""

    source: Source
    candidates: tuple[Candidate, ...]
    is_foreign: bool
    """In another language than the question."""

    @property
    def chance(self) -> float:
        """Return the chance that the source answers the question."""
        return max((one.chance for one in self.candidates), default=0.0)

    @property
    def best(self) -> Candidate:
        return max(self.candidates, key=lambda one: one.chance)

    def said(self, candidate: Candidate) -> str:
        """Return a statement with what it is read under."""
        place = candidate.statement
        return f"{context_of(self.source, place)} {self.source.text[place.start : place.end]}"

    @property
    def on_topic(self) -> float:
        """Return how far the source is on the subject of the question, as an answer or not: by the
        words that it shares, across languages by its rank in the search."""
        if self.is_foreign:
            return self.source.confidence
        return max((one.evidence.met for one in self.candidates), default=0.0)


def judge(
    question: str,
    language: str,
    sources: Sequence[Source],
    reader: StatementReader | None = None,
    search_across: Callable[[], Sequence[Source]] | None = None,
) -> list[Judged]:
    """Judge the sources in the question's language. If none of them answers, judge the others and
    what `search_across` finds in the other language."""
    question = without_number_words(question)
    words, wanted = telling_words(question), find_wanted(question)
    conditions = find_conditions(question)

    def read(
        sources: Sequence[Source], *, beside: Sequence[_ReadSource] = (), is_foreign: bool = False
    ) -> list[_ReadSource]:
        chosen = [one for one in sources if _is_foreign(one, language) is is_foreign]
        found = [_ReadSource(one, question, words, wanted, is_foreign) for one in chosen]
        if is_foreign and (names := find_names(question)):
            _keep_named(names, found, beside)
        asked = without(question, _apply(conditions, found) if conditions else ())
        _read_together(found, asked, reader, _ACROSS if is_foreign else _OWN)
        return found

    own = read(sources)
    best = max((one.best for one in own), default=NO_STATEMENT)
    if chance_of(best) >= MIN_CHANCE:
        return [one.judged(best) for one in own]
    further = search_across() if search_across else ()
    known = {one.chunk_id for one in sources}
    new = (one for one in further if one.chunk_id not in known)
    foreign = read([*sources, *new], beside=own, is_foreign=True)
    return [one.judged(best) for one in (*own, *foreign)]


def _apply(conditions: Sequence[Condition], sources: Sequence[_ReadSource]) -> set[Condition]:
    """Exclude statements that do not meet the conditions, nor the ones before. Return those that
    titles and headings meet: what is below need not repeat them."""
    above = [met_by(conditions, one.contexts) for one in sources]
    named: set[Condition] = set().union(*chain.from_iterable(above))
    dates = {one for one in named if one.is_date}
    codes = {one for one in conditions if not one.is_date}
    for one, met_above in zip(sources, above, strict=True):
        met = list(map(set.union, met_above, met_by(conditions, one.texts)))
        near = [before | here for before, here in pairwise([set(), *met])]
        one.open = [
            place
            for place in one.open
            if all(not any_of or any_of & near[place] for any_of in (dates, codes))
        ]
    return named


def _keep_named(
    names: Sequence[str], foreign: Sequence[_ReadSource], own: Sequence[_ReadSource]
) -> None:
    """Exclude statements in another language without the names of the question, if any source has
    them: others are about other people."""
    if any(one.has_any(names, place) for one in (*own, *foreign) for place in one.open):
        for one in foreign:
            one.open = [place for place in one.open if one.has_any(names, place)]


def _is_foreign(source: Source, language: str) -> bool:
    return (source.language or detect_language(source.text)) != language


def without_other_figures(question: str, ranked: Sequence[Judged]) -> list[Judged]:
    """Exclude statements with other numbers than the best one, which has one of the question's;
    `ranked` is best first, with an answer."""
    answer = ranked[0].said(ranked[0].best)
    return [
        replace(
            one,
            candidates=tuple(
                replace(each, chance=0.0)
                if has_other_figure(question, answer, one.said(each))
                else each
                for each in one.candidates
            ),
        )
        for one in ranked
    ]


class _ReadSource:
    """A source's statements, with the words that each shares with the question."""

    def __init__(
        self,
        source: Source,
        question: str,
        words: Sequence[Word],
        wanted: Wanted,
        is_foreign: bool,
    ) -> None:
        self.source = source
        self.is_foreign = is_foreign
        self.statements = statements(source)
        said = [spelled_out(one, source.text) for one in self.statements]
        self.texts = [as_read(one) for one in said]
        self.contexts = [without_addresses(context_of(source, one)) for one in self.statements]
        # What the model said by place, and for the other places.
        self.read: dict[int, float] = {}
        self.otherwise: float | None = None
        weights = np.array([word.weight for word in words], np.float32)
        # What each word means in the other language.
        means = meanings(words) if is_foreign else None
        own = shares_of_words(words, self.texts, means)
        in_range = rows_in_range(question, self.statements)
        for place, figure in in_range.items():
            # A number of the question is in the row's range.
            own[place, [has_figure(word.text) for word in words]] = 1
            row = self.statements[place]
            row = replace(row, cells=(f"{figure} ({row.cells[0]})", *row.cells[1:]))
            self.texts[place] = as_read(spelled_out(row, source.text))
        above = shares_of_words(words, self.contexts, means) * _IN_CONTEXT
        title = shares_of_words(words, [source.title], means) * _IN_TITLE
        self.own = weighted_means(own, weights)
        self.met = weighted_means(np.maximum(own, np.where(title > 0, title, above)), weights)
        self.holding = self._holding(question, wanted, said)
        # "Is it open on Saturday?" is answered by other days as well, "until when?" is not.
        days = find_weekdays(question) if wanted is not Wanted.ANYTHING else frozenset()
        quarters = find_quarters(question)
        dates = {one.term for one in find_dates(question)}
        denied = self._denied(question, words)
        is_of_denied = asks_denied(fold(question).text)
        self.open = [
            place
            for place, one in enumerate(self.statements)
            if (not in_range or one.group is None or place in in_range)
            and not (days and self._is_of_others(find_weekdays, place, days))
            and not (quarters and self._is_of_others(find_quarters, place, quarters))
            and not (dates and self._is_below_another_date(place, dates))
            and not self._is_of_another_event(place, question, wanted)
            # What an item in another language denies it need not deny of what it names itself.
            and not (one.context in denied and not (is_foreign and own[place].any()))
            and not (is_of_denied and not self._says_denied(place))
        ]

    def _denied(self, question: str, words: Sequence[Word]) -> set[str]:
        """Return the headings that deny what an open question asks for; in another language, where
        its words cannot be compared, those that deny anything."""
        if not is_open(fold(question).text):
            return set()
        headings = {one.context: fold(one.context).text.split("\n") for one in self.statements}
        if self.is_foreign:
            return {one for one, texts in headings.items() if is_denial(texts)}
        return {one for one, texts in headings.items() if denies(texts, words)}

    def has_any(self, names: Sequence[str], place: int) -> bool:
        said = f"{self.source.title} {self.contexts[place]} {self.texts[place]}"
        return any(name in said for name in names)

    def _says_denied(self, place: int) -> bool:
        return says_denied(fold(f"{self.contexts[place]} {self.texts[place]}").text)

    def _is_of_others(
        self, find: Callable[[str], frozenset[int]], place: int, asked: frozenset[int]
    ) -> bool:
        """Return whether a statement is of other weekdays or quarters than those in question."""
        said = find(f"{self.contexts[place]}\n{self.texts[place]}")
        return bool(said) and not said & asked

    def _is_below_another_date(self, place: int, asked: set[str]) -> bool:
        """Return whether the headings of a statement name one date, and neither they nor it one in
        question."""
        above, said = (
            {one.term for one in find_dates(text)}
            for text in (self.contexts[place], self.texts[place])
        )
        return len(above) == 1 and not (above | said) & asked

    def _is_of_another_event(self, place: int, question: str, wanted: Wanted) -> bool:
        # In the question's language the model tells birth from death; across languages it does not.
        if not self.is_foreign or wanted not in _OF_EVENTS:
            return False
        said = fold(f"{self.contexts[place]} {self.texts[place]}").text
        return has_another_event(fold(question).text, said, is_when=wanted is Wanted.TIME)

    def _holding(self, question: str, wanted: Wanted, texts: Sequence[str]) -> list[float]:
        """Return for each statement 1 if it has the wanted kind of answer, about the event in
        question, and less if not. Addresses of links are part of the `texts`."""
        asked = fold(question).text if wanted in _OF_EVENTS else ""
        lacking = _WITHOUT_SIGNS if wanted in WITH_SIGNS else 0.0

        def holds(one: Statement, text: str, context: str) -> bool:
            return can_hold(wanted, with_units(one) or text, question) and not (
                asked
                and lacks_event(
                    asked, fold(f"{context} {text}").text, is_when=wanted is Wanted.TIME
                )
            )

        return [
            1.0 if holds(*said) else lacking
            for said in zip(self.statements, texts, self.contexts, strict=True)
        ]

    def reading_priority(self, place: int) -> float:
        """Return how early the model should read a statement."""
        by_words = float(self.met[place] + self.own[place])
        return (
            _WORDS_WEIGHT * by_words
            + _SEARCH_WEIGHT * self.source.confidence
            + _KIND_WEIGHT * self.holding[place]
        )

    @property
    def best(self) -> float:
        """Return the log odds of the best statement."""
        found = [one.log_odds() for _, one in self._open()]
        return max(found, default=NO_STATEMENT)

    def judged(self, best: float) -> Judged:
        """Return the statements with their chances; `best` are the log odds of the best one in the
        question's language."""
        chances = dict.fromkeys(range(len(self.statements)), 0.0)
        for place, one in self._open():
            total = one.log_odds_across(best) if self.is_foreign else one.log_odds()
            chances[place] = chance_of(total)
        candidates = tuple(
            Candidate(statement, self._evidence(place), chances[place])
            for place, statement in enumerate(self.statements)
        )
        return Judged(self.source, candidates, self.is_foreign)

    def _open(self) -> Iterator[tuple[int, Evidence]]:
        """Yield the statements that may answer."""
        for place in self.open:
            one = self._evidence(place)
            if not one.was_left_out and (one.holds > 0 or one.read is not None):
                yield place, one

    def _evidence(self, place: int) -> Evidence:
        return Evidence(
            odds_of(self.source.confidence),
            float(self.met[place]),
            float(self.own[place]),
            self.read.get(place, self.otherwise),
            self.holding[place],
        )


def _read_together(
    sources: Sequence[_ReadSource],
    question: str,
    reader: StatementReader | None,
    limits: tuple[int, int, float],
) -> None:
    """Have the model read the statements of the highest priority."""
    places = [(one, place) for one in sources for place in one.open]
    if reader is None or not places:
        return
    places.sort(key=lambda pair: -pair[0].reading_priority(pair[1]))
    max_compared, max_read, by_nearness = limits
    places = places[:max_compared]
    texts = [(one.contexts[place], one.texts[place]) for one, place in places]
    priorities = [one.reading_priority(place) for one, place in places]
    try:
        found = reader.read_answers(question, texts, priorities, max_read, by_nearness)
        for one in sources:
            one.otherwise = math.nan
        for (one, place), value in zip(places, found, strict=True):
            one.read[place] = float(value)
        for one in sources:
            _read_labels(one, question, reader, by_nearness)
    except (EmbedderUnavailable, InvalidEmbedding):
        return


def _read_labels(
    source: _ReadSource, question: str, reader: StatementReader, by_nearness: float
) -> None:
    """Have the model read "Author: …" also without what names the document in the question: such a
    line does not repeat it."""
    for place, before in source.read.items():
        context, text = source.contexts[place], source.texts[place]
        if math.isnan(before) or not is_label(text):
            continue
        words = telling_words(question)
        short = without_name(question, words, shares_of_words(words, source.contexts[:1])[0] > 0)
        if short != question:
            (value,) = reader.read_answers(short, [(context, text)], [0.0], 1, by_nearness)
            source.read[place] = max(before, float(value))
