"""The words of a chunk that support an answer, which its citation shows and highlights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from portal.answering.markers import shown_markers
from portal.text.layout.sentences import sentence_spans
from portal.text.terms.analyser import query_terms

# A sentence of the chunk with less than this share of the best sentence's overlap with the answer
# does not support it.
_MIN_SHARE = 0.6
_MIN_TERMS = 2
# The share of an unmarked sentence's words that must be in the chunk for the marker of the next
# sentence to apply to it too.
_MIN_OF_UNMARKED = 0.5
# Markers at the start of a sentence belong to the sentence before.
_LEADING_MARKERS = re.compile(r"\A(?:\[\d{1,3}\]\s*)*")

Terms = frozenset[str]


def quoted_range(chunk: str, content: str, marker: int) -> tuple[int, int]:
    """Return the characters of `chunk` from the first to the last sentence that support the
    sentences of `content` with this marker; all of it if there are none, or none stands out."""
    claims = list(_claims(content, marker))
    if not claims:
        return 0, len(chunk)
    spans = sentence_spans(chunk)
    sentences = [frozenset(query_terms(chunk[start:end])) for start, end in spans]
    chosen = {
        place for terms, min_count in claims for place in _places(terms, min_count, sentences)
    }
    if not chosen:
        return 0, len(chunk)
    return spans[min(chosen)][0], spans[max(chosen)][1]


def _claims(content: str, marker: int) -> Iterator[tuple[Terms, int]]:
    """Yield the terms of each sentence with this marker, and how many of them must match."""
    # A marker applies to the sentence that it is in or follows, and to unmarked sentences before
    # that on the same line.
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
    """Split into sentences, each extending to the start of the next."""
    # A marker after the full stop belongs to the sentence before.
    starts = [
        end - len(_LEADING_MARKERS.sub("", content[start:end]))
        for start, end in sentence_spans(content)
    ]
    return list(pairwise([*starts, len(content)]))


def _places(claim: Terms, min_count: int, sentences: Sequence[Terms]) -> list[int]:
    """Return the indexes of the chunk's sentences that overlap most with a claim."""
    shared = [len(claim & terms) for terms in sentences]
    best = max(shared, default=0)
    if not claim or best < min_count:
        return []
    return [place for place, count in enumerate(shared) if count >= _MIN_SHARE * best]
