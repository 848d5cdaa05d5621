"""Whether a statement is about another thing of a group than the question: another weekday, city,
kind of leave or numbered unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import partial

from portal.answering.quoting.rules.groups.cities import find_cities
from portal.answering.quoting.rules.groups.months import find_mentioned_months, find_months
from portal.answering.quoting.rules.groups.numbered import find_numbers, find_things
from portal.answering.quoting.rules.groups.quarters import find_quarters
from portal.answering.quoting.rules.groups.sizes import SIZES, find_sizes
from portal.answering.quoting.rules.groups.terms import TERMS, find_terms
from portal.answering.quoting.rules.groups.weekdays import find_weekdays
from portal.answering.quoting.rules.kinds import OF_TIMES, Wanted
from portal.answering.quoting.rules.names import find_numbered, find_numbers_of
from portal.text.characters.folding import fold

# "On Saturdays only breakfast is served" says something about lunch as well. In 64 只, 只 is not
# "only" but a counter.
_RULES_OUT = re.compile(
    # 其他假别 is a header of a table.
    r"(?<!\d)(?<!\d )(?<!几)只|仅|除|其[余他它](?!(?:假[别期]|事项|项目|类[别型]):)"
    r"|\b(?:only|just|must|except|exclu\w+|outside|elsewhere|others?|rest|all|both|any)\b"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Things that must not be mistaken for each other, and how to find those that a text names."""

    find: Callable[[str], frozenset[Hashable]]
    mentions: Callable[[str], frozenset[Hashable]] | None = None
    """Finds all things that a text mentions, also those that it is not about: one of them may be
    the one asked about."""
    by_headings: bool = True
    """Whether a statement that names none is about those in its headings."""
    answers: Collection[Wanted] = ()
    """The kinds of answer that may name another thing than the question: if one of these is wanted,
    the group does not count."""


# Headings that name a city or a number seldom apply to everything below them.
_GROUPS = (
    # "Is it open on Saturday?" is answered by other days as well, "until when?" is not.
    Group(find_weekdays, answers=(Wanted.ANYTHING,)),
    Group(find_quarters),
    Group(find_months, mentions=find_mentioned_months, answers=OF_TIMES),
    Group(find_cities, by_headings=False, answers=(Wanted.PLACE,)),
    # "May I take a bag of 25 kg?" may be answered with another weight.
    *(
        Group(partial(find_sizes, size), by_headings=False, answers=(Wanted.ANYTHING,))
        for size in SIZES
    ),
    *(Group(partial(find_terms, terms)) for terms in TERMS),
)

Named = tuple[tuple[Group, frozenset[Hashable]], ...]


def find_named(question: str, wanted: Wanted) -> Named:
    """Return the groups from which a question names things, with these things."""
    groups = (one for one in _GROUPS if wanted not in one.answers)
    found = [(one, things) for one in groups if (things := one.find(question))]
    found += [
        (Group(partial(find_numbers, thing), by_headings=False), numbers)
        for thing, numbers in find_things(question).items()
    ]
    found += [
        (Group(partial(find_numbers_of, name), by_headings=False), numbers)
        for name, numbers in find_numbered(question).items()
    ]
    return tuple(found)


def names_others(asked: Named, context: str, text: str) -> bool:
    """Return whether a text, or its headings if it does not, names things of the same group and
    none of those asked about."""
    return any(_names_others(group, things, context, text) for group, things in asked)


def _names_others(group: Group, asked: frozenset[Hashable], context: str, text: str) -> bool:
    said = group.find(text)
    if said & asked or (group.mentions and group.mentions(text) & asked):
        return False
    above = group.find(context)
    if not said:
        return group.by_headings and bool(above) and not above & asked
    # Below a heading that names several, the text says which it is about.
    is_below_asked = bool(above & asked) and (above <= asked or not group.by_headings)
    return not (is_below_asked or _RULES_OUT.search(fold(text).text))
