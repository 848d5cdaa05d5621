"""The part of a chunk that best shows why it was found."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from portal.text.characters.scripts import HAN
from portal.text.layout.sentences import each_sentence, trim
from portal.text.terms.analyser import Token
from portal.text.terms.finding import find_terms
from portal.text.terms.highlight import merge_spans

_HAN_START = HAN[0]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is `original[start:end]`; `spans` are ranges of `text` to mark."""

    text: str
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]


def best_excerpt(text: str, terms: Collection[str], max_chars: int) -> Excerpt:
    """Return up to `max_chars` characters around most of the terms, cut at sentences or words.

    Without a hit, returns the beginning of the text.
    """
    hits = find_terms(text, terms)
    first, last = _densest(hits, max_chars)
    start, end = _window(text, first, last, max_chars)
    spans = merge_spans((s - start, e - start) for _, s, e in hits if start <= s and e <= end)
    return Excerpt(text[start:end], start, end, tuple(spans))


def _densest(hits: list[Token], max_chars: int) -> tuple[int, int]:
    """Return the window with the most distinct terms, longer ones first, then the most hits."""
    best = (0, 0, 0, 0)
    inside: Counter[str] = Counter()
    weight = left = 0
    for right, (term, _, end) in enumerate(hits):
        weight += len(term) if not inside[term] else 0
        inside[term] += 1
        while left <= right and end - hits[left][1] > max_chars:
            gone = hits[left][0]
            inside[gone] -= 1
            weight -= len(gone) if not inside[gone] else 0
            left += 1
        if left <= right:
            # On a tie the earlier window wins: a term is usually explained where it first occurs.
            best = max(best, (weight, right - left, -hits[left][1], end))
    return -best[2], best[3]


def _window(text: str, first: int, last: int, max_chars: int) -> tuple[int, int]:
    """Return a range of up to `max_chars` around `first` to `last`, cut at sentences or words."""
    sentences: list[tuple[int, int]] = []
    for sentence in each_sentence(text):
        if sentences and sentence[0] > first + max_chars:
            break  # Beyond the window.
        sentences.append(sentence)
    if not sentences:
        return 0, 0
    starts = [start for start, _ in sentences]
    ends = [end for _, end in sentences]
    earliest = max(0, last - max_chars)
    start = starts[max(0, bisect_right(starts, first) - 1)]
    if start < earliest:  # The sentence does not fit, so begin at the earliest word that does.
        start = _word_start(text, max(earliest, first - max_chars // 4), first)
    limit = start + max_chars
    end_index = bisect_right(ends, limit) - 1
    if end_index >= 0 and ends[end_index] >= max(last, start + max_chars // 2):
        return trim(text, start, ends[end_index])
    if limit >= len(text):
        return trim(text, start, len(text))
    return trim(text, start, _word_end(text, limit, max(last, start + 1)))


def _word_start(text: str, position: int, latest: int) -> int:
    while position < latest and _inside_word(text, position):
        position += 1
    return position


def _word_end(text: str, position: int, earliest: int) -> int:
    end = position
    while end > earliest and _inside_word(text, end):
        end -= 1
    # A single word longer than the whole excerpt has to be cut.
    return end if end > earliest else position


def _inside_word(text: str, position: int) -> bool:
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if before >= _HAN_START and after >= _HAN_START:
        return False  # Chinese has no spaces, so a line may begin at any character.
    return before.isalnum() and after.isalnum()
