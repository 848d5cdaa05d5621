"""Positions of given terms in a text, without analysing all of it.

A result shows a few words of a chunk; analysing hundreds of other words to find them would cost
more than the search. Chinese terms are searched literally. For other scripts only words that begin
like a term are analysed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN, HAN_RUN
from portal.text.terms.analyser import Token, analyse, folded_terms
from portal.text.terms.proximity import terms_in

_PLAIN = re.compile(r"(?!zz)[a-z0-9]+")
# Characters inside a word or number that its term lacks: e-mail, U.S., 1,234.
_JOINT = re.compile(r"[-'.,](?<=[a-z0-9].)(?=[a-z0-9])")
_WITHOUT_JOINTS = str.maketrans("", "", "-'.,")
_RUN_END = re.compile(f"[\\s{HAN}]")
# Longer strings are not words that a user searches for.
_MAX_RUN_LENGTH = 200


def find_terms(text: str, terms: tuple[str, ...], text_terms: str | None = None) -> list[Token]:
    """Return the tokens of the text whose term is one of `terms`, in the order of their start.

    Equals filtering `analyse(text)`, except that Chinese words of two or more characters are found
    everywhere, even where their neighbours make the segmenter cut them differently. If
    `text_terms`, the terms that the text is indexed by, are given, others are not looked for.
    """
    wanted = frozenset(terms)
    if not wanted:
        return []
    sought = _parse_terms(wanted)
    if sought is None:
        return [token for token in analyse(text) if token.term in wanted]
    if text_terms is not None:
        sought = sought.among(terms_in(terms, text_terms))
    prepared = fold(text)
    found = [
        Token(term, *prepared.original_span(start, end))
        for term, start, end in (*_han(prepared.text, sought), *_others(prepared.text, sought))
    ]
    found.sort(key=itemgetter(1, 2))
    return found


@dataclass(frozen=True, slots=True)
class _Sought:
    """The Chinese words, single Chinese characters and other terms to find, and the beginnings of
    words with these other terms."""

    han_words: tuple[str, ...]
    han_characters: frozenset[str]
    plain: frozenset[str]
    beginnings: tuple[str, ...]

    def among(self, terms: Collection[str]) -> _Sought:
        """Return what to look for in a text that has only these terms; all Chinese words stay."""
        plain = self.plain.intersection(terms)
        characters = self.han_characters.intersection(terms)
        return _Sought(self.han_words, characters, plain, _beginnings(plain))


@lru_cache(maxsize=512)
def _parse_terms(terms: frozenset[str]) -> _Sought | None:
    """Return what to look for; None if a term is neither Chinese nor plain letters and digits."""
    han = {term for term in terms if HAN_RUN.fullmatch(term)}
    plain = frozenset(term for term in terms if _PLAIN.fullmatch(term))
    if len(han) + len(plain) < len(terms):
        return None
    characters = frozenset(term for term in han if len(term) == 1)
    return _Sought(tuple(sorted(han - characters)), characters, plain, _beginnings(plain))


def _han(text: str, sought: _Sought) -> Iterator[tuple[str, int, int]]:
    for word in sought.han_words:
        start = text.find(word)
        while start >= 0:
            yield word, start, start + len(word)
            start = text.find(word, start + len(word))
    # A single character is part of many unrelated words, so here the segmentation decides.
    characters = sought.han_characters
    for run in HAN_RUN.finditer(text) if characters else ():
        if characters.isdisjoint(run.group()):
            continue
        for term, start, end in _terms_of(run.group()):
            if term in characters:
                yield term, run.start() + start, run.start() + end


def _others(text: str, sought: _Sought) -> Iterator[tuple[str, int, int]]:
    done = 0
    for place in _places(text, sought.beginnings):
        if place < done:
            continue
        start, done = _run(text, place, min_start=done)
        run = text[start:done]
        joined = run.translate(_WITHOUT_JOINTS)
        if any(map(joined.__contains__, sought.beginnings)):
            for term, first, last in _terms_of(run):
                if term in sought.plain:
                    yield term, start + first, start + last


def _places(text: str, beginnings: Collection[str]) -> list[int]:
    """Return the positions where a word may begin with one of these, in order."""
    if not beginnings:
        return []
    places = [match.start() for match in _JOINT.finditer(text)]
    for beginning in beginnings:
        place = text.find(beginning)
        while place >= 0:
            if not (place and _is_inside_word(text[place - 1], beginning[0])):
                places.append(place)
            place = text.find(beginning, place + 1)
    return sorted(places)


def _is_inside_word(before: str, first: str) -> bool:
    """Return whether a letter follows a letter, or a digit a digit."""
    return before.isascii() and (
        (first.isalpha() and before.isalpha()) or (first.isdigit() and before.isdigit())
    )


@lru_cache(maxsize=8192)
def _terms_of(run: str) -> tuple[tuple[str, int, int], ...]:
    return tuple(folded_terms(run))


def _run(text: str, place: int, *, min_start: int) -> tuple[int, int]:
    """Return the run of characters around a position that may be one word or code."""
    start = place
    while start > max(min_start, place - _MAX_RUN_LENGTH) and not _RUN_END.match(text[start - 1]):
        start -= 1
    end = _RUN_END.search(text, place)
    return start, min(end.start() if end else len(text), place + _MAX_RUN_LENGTH)


def _beginnings(terms: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of words with these terms.

    Stemming may change a word's last letter (happy, happi), so a term's last letter is ignored.
    """
    return tuple({term[: max(1, len(term) - 1)].partition("zz")[0] for term in terms})
