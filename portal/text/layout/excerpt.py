"""The part of a chunk that best shows why it was found."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

from portal.text.characters.scripts import HAN
from portal.text.layout.endings import end_before_heading
from portal.text.layout.sentences import sentence_spans, trim
from portal.text.layout.tables import CELL_BORDER
from portal.text.terms.analyser import Token
from portal.text.terms.finding import find_terms
from portal.text.terms.highlight import merge_spans

_HAN_START = HAN[0]
# Sentences of longer texts are not cached; chunks of files are shorter.
_MAX_KEPT = 4000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text` is `original[start:end]`; `spans` are ranges of `text` to mark."""

    text: str
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]


def best_excerpt(
    text: str, terms: tuple[str, ...], max_chars: int, text_terms: str | None = None
) -> Excerpt:
    """Return up to `max_chars` characters around most of the terms, cut at sentences or words.

    Without a hit, returns the beginning of the text. `text_terms` as for `find_terms`.
    """
    hits = find_terms(text, terms, text_terms)
    first, last = _densest(hits, max_chars)
    last = _row_end(text, last, max_chars)
    start, end = _window(text, first, last, max_chars)
    end = end_before_heading(text, start, _without_part_of_row(text, end, max(start, last)), last)
    spans = merge_spans((s - start, e - start) for _, s, e in hits if start <= s and e <= end)
    return Excerpt(text[start:end], start, end, tuple(spans))


def _densest(hits: list[Token], max_chars: int) -> tuple[int, int]:
    """Return the shortest window with the most distinct terms, weighted by length; of equal windows
    the one with the most hits in an excerpt from there."""
    best = (0, 0, 0, 0, 0)
    inside = {term: 0 for term, _, _ in hits}
    starts = [start for _, start, _ in hits]
    weight = left = 0
    for right, (term, _, end) in enumerate(hits):
        weight += len(term) if not inside[term] else 0
        inside[term] += 1
        while left <= right and (end - starts[left] > max_chars or inside[hits[left][0]] > 1):
            gone = hits[left][0]
            inside[gone] -= 1
            weight -= len(gone) if not inside[gone] else 0
            left += 1
        if left <= right and (weight, starts[left] - end) >= best[:2]:
            start = starts[left]
            count = bisect_right(starts, start + max_chars) - left
            # On a tie the earlier window wins: a term is usually explained where it first occurs.
            best = max(best, (weight, start - end, count, -start, end))
    return -best[3], best[4]


def _window(text: str, first: int, last: int, max_chars: int) -> tuple[int, int]:
    """Return a range of up to `max_chars` around `first` to `last`, cut at sentences or words."""
    starts, ends = _kept_sentences(text) if len(text) <= _MAX_KEPT else _sentences(text)
    if not starts:
        return 0, 0
    earliest = max(0, last - max_chars)
    start = starts[max(0, bisect_right(starts, first) - 1)]
    if start > (latest := len(text) - max_chars // 2):  # At the end of a text, show what precedes.
        start = starts[bisect_left(starts, max(0, latest))]
    if start < earliest:  # The sentence does not fit, so begin at the earliest word that does.
        line = text.find("\n", earliest, last) + 1
        if line and CELL_BORDER in text[line:last]:
            start = line
        else:
            start = _word_start(text, max(earliest, first - max_chars // 4), first)
    limit = start + max_chars
    end_index = bisect_right(ends, limit) - 1
    if end_index >= 0 and ends[end_index] >= max(last, start + max_chars // 2):
        return trim(text, start, ends[end_index])
    if limit >= len(text):
        return trim(text, start, len(text))
    return trim(text, start, _word_end(text, limit, max(last, start + 1)))


def _row_end(text: str, position: int, max_chars: int) -> int:
    """Return the end of the table row at a position; the position if there is none, or if the row
    is too long."""
    start, end = _line(text, position)
    is_row = CELL_BORDER in text[start:end]
    return end if is_row and end - start <= max_chars else position


def _without_part_of_row(text: str, end: int, earliest: int) -> int:
    """Return where a part of a text should end, which is not within a table row if possible."""
    line, line_end = _line(text, end)
    is_cut = end < line_end and CELL_BORDER in text[line:line_end] and line - 1 >= earliest
    return line - 1 if is_cut else end


def _line(text: str, position: int) -> tuple[int, int]:
    end = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, end if end >= 0 else len(text)


def _sentences(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where sentences begin and end."""
    spans = sentence_spans(text)
    return tuple(start for start, _ in spans), tuple(end for _, end in spans)


# A team's searches find the same few thousand chunks again and again.
_kept_sentences = lru_cache(maxsize=2048)(_sentences)


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
