"""Differences between two texts: by line, and by word within changed lines.

Lines that occur exactly once in each text are matched first, in their longest common order, then
the text between them in the same way (Bram Cohen's patience diff); the rest is compared by
`difflib` if it is short. The work is bounded: beyond the limit, text is reported as removed and
added as a whole.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from portal.text.characters.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, UNSPACED
from portal.text.layout.sentences import each_sentence

# Longer lines, such as paragraphs of Chinese, are compared sentence by sentence.
_LONG_LINE = 200
# Above this many characters, old and new together, changes are not refined to words.
_MAX_FINE_CHARACTERS = 6_000
# Units read, plus pairs of units that difflib may compare: a second or two.
_MAX_UNITS = 8_000_000
_MAX_PAIRS = 4_000_000
_MAX_PAIRS_AT_ONCE = 40_000
# With less in common, a change reads better as a whole than word by word.
_MIN_COMMON = 0.25

# The line ends of str.splitlines, which would create all lines at once.
_END = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"[^{_END}]*+(?:\r\n|[{_END}])|[^{_END}]+")
_SINGLE = f"[{HAN}{HIRAGANA}{KATAKANA}{HANGUL}{UNSPACED}]"
_WORD = re.compile(rf"{_SINGLE}|(?:(?!{_SINGLE})\w)+|\s+|.", re.DOTALL)
_WORD_CHARACTER = re.compile(r"\w")


class Kind(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Piece:
    kind: Kind
    text: str


Run = tuple[int, int, int]
"""The positions where equal units begin in the old and in the new text, and their number."""


@dataclass(slots=True)
class _Budget:
    """The remaining budget for expensive comparisons."""

    units: int = _MAX_UNITS
    pairs: int = _MAX_PAIRS


def differences(old: str, new: str) -> list[Piece]:
    """Return pieces in order: those not ADDED make up `old`, those not REMOVED `new`.

    No piece is empty, and no two neighbours have the same kind.
    """
    budget, pieces = _Budget(), _Pieces()
    before, after = list(_units(old)), list(_units(new))
    for gap_before, gap_after, same in _steps(before, after, _runs(before, after, budget)):
        pieces.add_changed("".join(gap_before), "".join(gap_after), budget)
        pieces.add(Kind.SAME, "".join(same))
    return pieces.found


def has_more_units(texts: Iterable[str], *, than: int) -> bool:
    """Return whether texts have more than `than` lines and sentences, which determine the cost."""
    units = chain.from_iterable(map(_units, texts))
    return next(islice(units, than, None), None) is not None


def characters_changed(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Return how many characters were added and how many removed."""
    counts = Counter[Kind]()
    for piece in pieces:
        counts[piece.kind] += len(piece.text)
    return counts[Kind.ADDED], counts[Kind.REMOVED]


class _Pieces:
    """Collects pieces and merges neighbours of the same kind."""

    def __init__(self) -> None:
        self.found: list[Piece] = []

    def add(self, kind: Kind, text: str) -> None:
        if not text:
            return
        if self.found and self.found[-1].kind is kind:
            text = self.found.pop().text + text
        self.found.append(Piece(kind, text))

    def add_changed(self, old: str, new: str, budget: _Budget) -> None:
        """Add a changed stretch, by words if enough of it is the same."""
        if old and new and max(len(old), len(new)) <= _MAX_FINE_CHARACTERS:
            for piece in _by_words(old, new, budget):
                self.add(piece.kind, piece.text)
            return
        self.add(Kind.REMOVED, old)
        self.add(Kind.ADDED, new)


def _units(text: str) -> Iterator[str]:
    """Yield lines with their ends, and the sentences of long lines; together they are the text."""
    for match in _LINE.finditer(text):
        line, start = match.group(), 0
        if len(line) > _LONG_LINE:
            for next_start, _ in islice(each_sentence(line), 1, None):
                yield line[start:next_start]
                start = next_start
        yield line[start:]


def _by_words(old: str, new: str, budget: _Budget) -> list[Piece]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    steps = list(_steps(before, after, _runs(before, after, budget)))
    common = sum(_letters("".join(same)) for _, _, same in steps)
    if common < _MIN_COMMON * min(_letters(old), _letters(new)):
        return [Piece(Kind.REMOVED, old), Piece(Kind.ADDED, new)]
    pieces, removed, added = _Pieces(), "", ""
    for place, (gap_before, gap_after, run) in enumerate(steps):
        removed, added = removed + "".join(gap_before), added + "".join(gap_after)
        same = "".join(run)
        is_between = (removed or added) and any(steps[place + 1][:2] if run else ())
        if is_between and _is_slight(same):
            removed, added = removed + same, added + same
            continue
        pieces.add(Kind.REMOVED, removed)
        pieces.add(Kind.ADDED, added)
        pieces.add(Kind.SAME, same)
        removed = added = ""
    pieces.add(Kind.REMOVED, removed)
    pieces.add(Kind.ADDED, added)
    return pieces.found


def _is_slight(same: str) -> bool:
    """Return whether an equal run is shorter than a word and thus likely a coincidence."""
    return _letters(same) <= 1 and "\n" not in same


def _letters(text: str) -> int:
    return len(_WORD_CHARACTER.findall(text))


Step = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _steps(old: Sequence[str], new: Sequence[str], runs: Sequence[Run]) -> Iterator[Step]:
    """Yield (removed, added, the same after them), to the end of both texts."""
    at_old = at_new = 0
    for in_old, in_new, count in [*runs, (len(old), len(new), 0)]:
        yield old[at_old:in_old], new[at_new:in_new], old[in_old : in_old + count]
        at_old, at_new = in_old + count, in_new + count


def _runs(old: Sequence[str], new: Sequence[str], budget: _Budget) -> list[Run]:
    """Return equal runs in order, as many as the budget allows."""
    found: list[Run] = []
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        first, last, new_first, new_last = waiting.pop()
        budget.units -= last - first + new_last - new_first
        if budget.units < 0:
            break
        while first < last and new_first < new_last and old[first] == new[new_first]:
            found.append((first, new_first, 1))
            first, new_first = first + 1, new_first + 1
        while first < last and new_first < new_last and old[last - 1] == new[new_last - 1]:
            last, new_last = last - 1, new_last - 1
            found.append((last, new_last, 1))
        if first == last or new_first == new_last:
            continue
        span = (first, last, new_first, new_last)
        anchors = _anchors(old, new, span)
        if anchors:
            found += [(in_old, in_new, 1) for in_old, in_new in anchors]
            waiting += _between(anchors, span)
        else:
            found += _compare(old, new, span, budget)
    return _merge_runs(sorted(found))


def _merge_runs(runs: Sequence[Run]) -> list[Run]:
    """Merge runs that follow each other in both texts."""
    joined: list[Run] = []
    for in_old, in_new, count in runs:
        if joined:
            before_old, before_new, before_count = joined[-1]
            if (before_old + before_count, before_new + before_count) == (in_old, in_new):
                joined[-1] = (before_old, before_new, before_count + count)
                continue
        joined.append((in_old, in_new, count))
    return joined


Span = tuple[int, int, int, int]


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """Return units that occur exactly once in each range, in their longest common order."""
    first, last, new_first, new_last = span
    counts, new_counts = Counter(old[first:last]), Counter(new[new_first:new_last])
    places = {
        new[place]: place for place in range(new_first, new_last) if new_counts[new[place]] == 1
    }
    pairs = [
        (place, places[old[place]])
        for place in range(first, last)
        if counts[old[place]] == 1 and old[place] in places
    ]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs, sorted by their first, whose second rises too."""
    ends: list[int] = []  # The smallest second value that ends a sequence of each length,
    holders: list[int] = []  # and the index of its pair.
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(holders[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        holders[length : length + 1] = [index]
    chosen: list[tuple[int, int]] = []
    index = holders[-1] if holders else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _between(anchors: Sequence[tuple[int, int]], span: Span) -> Iterator[Span]:
    first, last, new_first, new_last = span
    for in_old, in_new in [*anchors, (last, new_last)]:
        if first < in_old and new_first < in_new:
            yield first, in_old, new_first, in_new
        first, new_first = in_old + 1, in_new + 1


def _compare(old: Sequence[str], new: Sequence[str], span: Span, budget: _Budget) -> list[Run]:
    first, last, new_first, new_last = span
    pairs = (last - first) * (new_last - new_first)
    if pairs > min(_MAX_PAIRS_AT_ONCE, budget.pairs):
        return []
    budget.pairs -= pairs
    matcher = difflib.SequenceMatcher(
        None, old[first:last], new[new_first:new_last], autojunk=False
    )
    return [
        (first + match.a, new_first + match.b, match.size)
        for match in matcher.get_matching_blocks()
        if match.size
    ]
