"""How close the words of a query are to each other in a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

# Terms of the best stretch of a text that is looked at: a sentence or two.
_STRETCH = 30


def closeness(terms: Sequence[str], text_terms: str) -> float:
    """Return the share of a query's terms, longer ones weighted more, in the 30 consecutive terms
    of a text that have most of them: in [0, 1]. The text's terms are given as they are indexed,
    each after one space."""
    weights = {term: len(term) for term in terms}
    inside: Counter[str] = Counter()
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
    return best / max(1, sum(weights.values()))


def _places(terms: Iterable[str], text_terms: str) -> list[tuple[int, str]]:
    """Return where terms stand in a text, counted in its terms."""
    # Searching the text is several times faster than splitting it into hundreds of words.
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
