"""What a question asks for, found once and compared with every statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from portal.answering.quoting.questions import (
    Word,
    content_words,
    find_dates,
    without_greeting,
    without_number_words,
)
from portal.answering.quoting.rules.conditions import (
    Condition,
    find_conditions,
    find_names,
)
from portal.answering.quoting.rules.contacts import whose_contact
from portal.answering.quoting.rules.events import Events, find_events
from portal.answering.quoting.rules.groups.months import find_months
from portal.answering.quoting.rules.groups.named import Named, find_named
from portal.answering.quoting.rules.kinds import OF_EVENTS, Wanted, find_wanted
from portal.answering.quoting.rules.negation import asks_denied, is_open
from portal.text.characters.folding import fold
from portal.text.terms.lexicon import Sense, translations

# Every statement is searched for each word.
_MAX_WORDS = 128


@dataclass(frozen=True)
class Asked:
    """A question, with its content words, the kind of answer that it wants and its conditions."""

    question: str

    @classmethod
    def of(cls, question: str) -> Asked:
        return cls(without_number_words(without_greeting(question)))

    @cached_property
    def folded(self) -> str:
        return fold(self.question).text

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return content_words(self.question)[:_MAX_WORDS]

    @cached_property
    def terms(self) -> list[tuple[str, ...]]:
        """Return the form in which texts have each word: Chinese as written, others as stems."""
        return [(one.text if one.is_han else one.term,) for one in self.words]

    @cached_property
    def senses(self) -> list[tuple[Sense, ...]]:
        """Return what each word means in the other language."""
        return translations([term for (term,) in self.terms])

    @cached_property
    def translated(self) -> list[tuple[str, ...]]:
        """Return the terms of all senses of each word."""
        return [tuple(chain.from_iterable(senses)) for senses in self.senses]

    @cached_property
    def wanted(self) -> Wanted:
        return find_wanted(self.question)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        return find_conditions(self.question)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return find_names(self.question)

    @cached_property
    def person(self) -> tuple[str, ...]:
        """Return the names of the person whose number or address is asked for."""
        return whose_contact(self.question) if self.wanted is Wanted.CONTACT else ()

    @cached_property
    def events(self) -> Events:
        """Return the events whose person, place or time is wanted."""
        return find_events(self.folded) if self.wanted in OF_EVENTS else ()

    @cached_property
    def named(self) -> Named:
        """Return the weekdays, cities and other things that an answer has to be about."""
        return find_named(self.question, self.wanted)

    @cached_property
    def months(self) -> frozenset[int]:
        return find_months(self.question)

    @cached_property
    def dates(self) -> frozenset[str]:
        return frozenset(one.term for one in find_dates(self.question))

    @cached_property
    def is_open(self) -> bool:
        """Return whether it asks what, who or how, and not for exceptions."""
        return is_open(self.folded)

    @cached_property
    def asks_denied(self) -> bool:
        """Return whether it asks for what is denied: "what can't be returned?"."""
        return asks_denied(self.folded)
