"""How closely the words of a query stand together in a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# Words of the best stretch of a text that is looked at: a sentence or two.
_STRETCH = 30


def closeness(terms: Sequence[str], text_terms: str) -> float:
    """Return the share of a query's terms, longer ones weighted more, in the 30 consecutive terms
    of a text that have most of them: in [0, 1]. The text's terms are given as they are indexed."""
    weights = {term: len(term) for term in terms}
    places = [(place, term) for place, term in enumerate(text_terms.split()) if term in weights]
    inside: Counter[str] = Counter()
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
