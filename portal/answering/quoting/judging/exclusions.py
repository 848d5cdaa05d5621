"""Statements that do not answer a question, however likely the model finds them: those of another
day, date, quarter or event, and those below a heading that denies what is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.rules.conditions import find_quarters
from portal.answering.quoting.rules.events import has_another_event
from portal.answering.quoting.rules.kinds import Wanted
from portal.answering.quoting.rules.negation import denies, is_denial, says_denied
from portal.answering.quoting.rules.weekdays import find_weekdays
from portal.text.characters.folding import fold


def is_excluded(asked: Asked, context: str, text: str, *, is_foreign: bool) -> bool:
    """Return whether a statement, below `context`, says nothing of what is asked."""
    said = f"{context}\n{text}"
    return (
        _is_of_others(asked.weekdays, find_weekdays, said)
        or _is_of_others(asked.quarters, find_quarters, said)
        or _is_below_another_date(asked.dates, context, text)
        # In the question's language the model tells birth from death; across languages it does not.
        or (is_foreign and _is_of_another_event(asked, said))
        or (asked.is_of_denied and not says_denied(fold(said).text))
    )


def find_denials(asked: Asked, headings: Iterable[str], *, is_foreign: bool) -> set[str]:
    """Return the headings that deny what an open question asks for; in another language, where its
    words cannot be compared, those that deny anything."""
    if not asked.is_open:
        return set()
    lines = {one: fold(one).text.split("\n") for one in headings}
    if is_foreign:
        return {one for one, texts in lines.items() if is_denial(texts)}
    return {one for one, texts in lines.items() if denies(texts, asked.words)}


def _is_of_others(asked: frozenset[int], find: Callable[[str], frozenset[int]], said: str) -> bool:
    """Return whether a statement is of other weekdays or quarters than those in question."""
    if not asked:
        return False
    found = find(said)
    return bool(found) and not found & asked


def _is_below_another_date(asked: frozenset[str], context: str, text: str) -> bool:
    """Return whether the headings of a statement name one date, and neither they nor it one in
    question."""
    if not asked:
        return False
    above, said = ({one.term for one in find_dates(each)} for each in (context, text))
    return len(above) == 1 and not (above | said) & asked


def _is_of_another_event(asked: Asked, said: str) -> bool:
    is_when = asked.wanted is Wanted.TIME
    return bool(asked.events) and has_another_event(asked.events, fold(said).text, is_when=is_when)
