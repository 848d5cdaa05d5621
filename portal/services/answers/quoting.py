"""Which words of a passage an answer rests on: those that a citation shows and marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from portal.answering.markers import shown_markers
from portal.text.analyser import query_terms
from portal.text.sentences import sentence_spans

# A sentence of the passage that has less than this share of what the best one has in common with
# the answer was not what the answer was made from.
_MIN_SHARE = 0.6
_MIN_TERMS = 2
# A sentence without a marker before one that has some: so much of it has to stand in the passage
# for it to belong to that marker too.
_MIN_OF_UNMARKED = 0.5
# A sentence that opens with markers begins behind them: they belong to what stands before.
_LEADING_MARKERS = re.compile(r"\A(?:\[\d{1,3}\]\s*)*")

Terms = frozenset[str]


def quoted_range(chunk: str, content: str, marker: int) -> tuple[int, int]:
    """Characters of `chunk` from the first to the last sentence that the sentences of `content`
    with this marker rest on; all of it where there is none, or none stands out."""
    claims = list(_claims(content, marker))
    if not claims:
        return 0, len(chunk)
    spans = sentence_spans(chunk)
    sentences = [frozenset(query_terms(chunk[start:end])) for start, end in spans]
    chosen = {place for terms, least in claims for place in _places(terms, least, sentences)}
    if not chosen:
        return 0, len(chunk)
    return spans[min(chosen)][0], spans[max(chosen)][1]


def _claims(content: str, marker: int) -> Iterator[tuple[Terms, int]]:
    """The terms of each sentence that a marker stands for, and how many of them a sentence of the
    passage has to have: those that it stands in or behind, and on their line those before them
    that have no marker of their own."""
    places = [(start, number) for start, _, number in shown_markers(content)]
    unmarked: list[tuple[int, int]] = []
    for start, end in _sentences(content):
        numbers = {number for at, number in places if start <= at < end}
        if marker in numbers:
            for before in unmarked:
                terms = frozenset(query_terms(content[before[0] : before[1]]))
                yield terms, max(1, round(_MIN_OF_UNMARKED * len(terms)))
            terms = frozenset(query_terms(content[start:end]))
            yield terms, min(_MIN_TERMS, len(terms))
        unmarked = [] if numbers or "\n" in content[start:end] else [*unmarked, (start, end)]


def _sentences(content: str) -> list[tuple[int, int]]:
    """Sentences, each up to where the next begins: a marker behind the full stop belongs to what
    it follows."""
    starts = [
        end - len(_LEADING_MARKERS.sub("", content[start:end]))
        for start, end in sentence_spans(content)
    ]
    return list(pairwise([*starts, len(content)]))


def _places(claim: Terms, least: int, sentences: Sequence[Terms]) -> list[int]:
    """Sentences of a passage that have most in common with what is claimed."""
    shared = [len(claim & terms) for terms in sentences]
    best = max(shared, default=0)
    if not claim or best < least:
        return []
    return [place for place, count in enumerate(shared) if count >= _MIN_SHARE * best]
