"""The words of a query in a text, and how close they are to each other there.

Texts are given as they are indexed, each term after one space: searching them is several times
faster than splitting them into hundreds of words.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

# The length of the stretches of text that are compared, in terms: a sentence or two.
_STRETCH = 30


@lru_cache(maxsize=256)
def terms_in(terms: tuple[str, ...], text_terms: str) -> tuple[str, ...]:
    """Return the terms of a query that a text has. Cached, because a search asks for each chunk
    several times."""
    padded = f" {text_terms} "
    return tuple([term for term in terms if f" {term} " in padded])


def closeness(terms: tuple[str, ...], text_terms: str) -> float:
    """Return the share of a query's terms, longer ones weighted more, in the 30 consecutive terms
    of a text that have most of them: in [0, 1]."""
    weights = {term: len(term) for term in terms_in(terms, text_terms)}
    inside = dict.fromkeys(weights, 0)
    places = _places(weights, text_terms)
    best = weight = first = 0
    for place, term in places:
        weight += 0 if inside[term] else weights[term]
        inside[term] += 1
        while places[first][0] <= place - _STRETCH:
            gone = places[first][1]
            inside[gone] -= 1
            weight -= 0 if inside[gone] else weights[gone]
            first += 1
        best = max(best, weight)
    return best / max(1, sum(map(len, set(terms))))


def _places(terms: Iterable[str], text_terms: str) -> list[tuple[int, str]]:
    """Return the positions of terms in a text, counted in terms."""
    padded = f" {text_terms} "
    found: list[tuple[int, str]] = []
    for term in terms:
        word = f" {term} "
        start = padded.find(word)
        while start >= 0:
            found.append((start, term))
            start = padded.find(word, start + len(word) - 1)
    found.sort()
    places, place, done = [], 0, 0
    for start, term in found:
        place += padded.count(" ", done, start)
        done = start
        places.append((place, term))
    return places
