"""The statements of a source, with their features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.evidence import NO_STATEMENT, Evidence, chance_of, odds_of
from portal.answering.quoting.judging.exclusions import find_denials, is_excluded
from portal.answering.quoting.judging.judged import Candidate, Judged
from portal.answering.quoting.judging.matching import Shares, shares_of_words, weighted_means
from portal.answering.quoting.judging.wide_rows import (
    MIN_WIDE,
    can_be_told,
    in_months,
    narrowed,
)
from portal.answering.quoting.phrasing import (
    as_read,
    context_of,
    spelled_out,
    with_units,
    without_addresses,
)
from portal.answering.quoting.questions import content_words
from portal.answering.quoting.rules.contacts import is_row_of_another_person
from portal.answering.quoting.rules.days import rows_of_other_days
from portal.answering.quoting.rules.events import lacks_event
from portal.answering.quoting.rules.groups.cities import rows_of_other_cities
from portal.answering.quoting.rules.kinds import WITH_SIGNS, Wanted, can_hold
from portal.answering.quoting.rules.parties import Parties, with_party
from portal.answering.quoting.rules.ranges import has_figure, rows_in_range, with_figure
from portal.answering.quoting.rules.synonyms import reworded
from portal.answering.quoting.statements import Statement, statements
from portal.domain.answering import Source
from portal.text.characters.folding import fold

# Words in a statement's headings, table header or introduction count as well, but less; those of
# the document's title less still.
_IN_CONTEXT, _IN_TITLE = 0.9, 0.75
# How much shared words, the confidence of the source and the wanted kind of answer add to the
# nearness of a statement when the statements to read are chosen.
_WORDS_WEIGHT, _SEARCH_WEIGHT, _KIND_WEIGHT = 0.08, 0.03, 0.05
_MIN_OFFICE = 0.75  # Min share of the words of an office, such as 总经理, in a text that names it.
_BARE = re.compile(r"\d[\d,.]{0,12}")
# What the lack of an unmistakable kind of answer counts; having it counts 1.
_WITHOUT_SIGNS = -2.0


class ReadSource:
    """A source's statements, with the words that each shares with the question."""

    def __init__(self, source: Source, asked: Asked, parties: Parties, *, is_foreign: bool) -> None:
        self.source = source
        self._asked = asked
        self._parties = parties
        self.is_foreign = is_foreign
        self.statements = statements(source)
        self._rows = [in_months(one, asked) for one in self.statements]
        said = [spelled_out(one, source.text) for one in self._rows]
        self.texts = [as_read(one) for one in said]
        self.contexts = [without_addresses(context_of(source, one)) for one in self.statements]
        # The log odds that the model gave, by place, and the value for the other places.
        self.read: dict[int, float] = {}
        self.otherwise: float | None = None
        words = asked.words
        weights = np.array([word.weight for word in words], np.float32)
        means = asked.senses if is_foreign else None
        own = shares_of_words(words, self.texts, means)
        self._meet_rows(own)
        above = shares_of_words(words, self.contexts, means) * _IN_CONTEXT
        title = shares_of_words(words, [source.title], means) * _IN_TITLE
        self.own = weighted_means(own, weights)
        self.met = weighted_means(np.maximum(own, np.where(title > 0, title, above)), weights)
        if not is_foreign:
            self._count_synonyms(asked)
        self.holding = _holding(asked, self._rows, said, self.contexts)
        self.open = self._find_open(own)

    def _meet_rows(self, own: Shares) -> None:
        """Find the rows whose range includes a number of the question, or that cover all cities
        without a row of their own. Add the number or city to their first cell, and count its words
        as matched. Changes `own`: (statements, words of the question)."""
        question = self._asked.question
        in_range = rows_in_range(question, self.statements)
        rows = in_range or rows_of_other_cities(question, self.statements, self.contexts)
        for place, asked_of in rows.items():
            is_said = [_is_said(one.text, asked_of, bool(in_range)) for one in self._asked.words]
            own[place, is_said] = 1
            row = self.statements[place]
            row = replace(row, cells=(f"{asked_of} ({row.cells[0]})", *row.cells[1:]))
            self.texts[place] = as_read(spelled_out(row, self.source.text))
        self._met_rows = frozenset(rows)
        # If a range matches, no other row of any table counts.
        beside = self.statements if in_range else [self.statements[place] for place in rows]
        self._passed_over = {one.group for one in beside} - {None}

    def _find_open(self, own: Shares) -> list[int]:
        """Return the places of the statements that may answer. `own` are the shares that they have
        of the question's words: (statements, words)."""
        asked, is_foreign = self._asked, self.is_foreign
        denials = find_denials(
            asked, {one.context for one in self.statements}, is_foreign=is_foreign
        )
        # Across languages the model mistakes a duty manager for a general manager.
        is_of_office = is_foreign and asked.wanted is Wanted.HOLDER
        of_other_days = rows_of_other_days(asked.question, self.statements)
        return [
            place
            for place, one in enumerate(self.statements)
            if (place in self._met_rows or one.group not in self._passed_over)
            and place not in of_other_days
            # In another language a denying heading does not exclude items with a word asked about.
            and not (one.context in denials and not (is_foreign and own[place].any()))
            and not (is_of_office and self.met[place] < _MIN_OFFICE)
            and not (not is_foreign and is_row_of_another_person(asked.person, one))
            and not is_excluded(
                asked, self.contexts[place], self.texts[place], is_foreign=is_foreign
            )
        ]

    def _count_synonyms(self, asked: Asked) -> None:
        """Count words of the question as matched where a statement has a synonym."""
        for place, text in enumerate(self.texts):
            question = self.reworded(asked.question, place)
            if question == asked.question:
                continue
            words = content_words(question)
            weights = np.array([word.weight for word in words], np.float32)
            here, above = shares_of_words(words, [text, self.contexts[place]])
            met = np.maximum(here, above * _IN_CONTEXT)
            own, met = weighted_means(np.stack([here, met]), weights)
            self.own[place] = max(self.own[place], own)
            self.met[place] = max(self.met[place], met)

    def reworded(self, question: str, place: int) -> str:
        """Return a question in the words of a statement."""
        text = self.texts[place]
        return reworded(with_party(question, text, self._parties), text, self.contexts[place])

    def has_any(self, names: Sequence[str], place: int) -> bool:
        said = f"{self.source.title} {self.contexts[place]} {self.texts[place]}"
        return any(name in said for name in names)

    def narrowed(self, place: int) -> str:
        """Return the text that the model reads for a statement the second time. Rows of many cells
        are cut to the cells that name the row or may answer, because the model was trained on few
        such rows; a sentence tells which of its clauses includes a number of the question."""
        if not self.statements[place].cells:
            return with_figure(self._asked.question, self.texts[place])
        if place in self._met_rows or not can_be_told(self.statements[place], self._asked):
            return self.texts[place]
        row = narrowed(self._rows[place], self._asked, is_foreign=self.is_foreign)
        return as_read(spelled_out(row, self.source.text))

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
            len(self.statements[place].cells) >= MIN_WIDE,
        )


def _is_said(word: str, asked_of: str, is_figure: bool) -> bool:
    return has_figure(word) if is_figure else word in fold(asked_of).text


def _holding(
    asked: Asked, found: Sequence[Statement], texts: Sequence[str], contexts: Sequence[str]
) -> list[float]:
    """Return for each statement 1 if it has the wanted kind of answer, about the event asked about,
    and less if not. `texts` include the addresses of links."""
    wanted = asked.wanted
    lacking = _WITHOUT_SIGNS if wanted in WITH_SIGNS else 0.0

    def holds(one: Statement, text: str, context: str) -> bool:
        is_of_list = wanted is Wanted.LIST and one.group is not None
        if not (is_of_list or can_hold(wanted, with_units(one) or text, asked.question)):
            return False
        if not asked.events:
            return True
        said = fold(f"{context} {text}").text
        return not lacks_event(asked.events, said, is_when=wanted is Wanted.TIME)

    def lacks(one: Statement) -> float:
        # Figures whose unit no header names may be of any kind.
        is_bare = wanted is Wanted.MONEY and all(map(_BARE.fullmatch, one.cells[1:]))
        return 0.0 if one.cells and is_bare else lacking

    return [
        1.0 if holds(*one) else lacks(one[0]) for one in zip(found, texts, contexts, strict=True)
    ]
