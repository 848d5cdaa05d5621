"""What tells two texts apart: line by line, and word by word inside of what changed.

Lines that stand once in either text are matched first, in their longest common order, then what
lies between them again (Bram Cohen's patience diff); what is left is compared by `difflib` where it
is short. The work is bounded: what would take longer is told as taken out and put in whole.
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

from portal.text.scripts import HAN, HANGUL, HIRAGANA, KATAKANA, UNSPACED
from portal.text.sentences import each_sentence

# Longer lines, such as paragraphs of Chinese, are compared sentence by sentence.
_LONG_LINE = 200
# Of more characters than these, before and after, words are not told apart.
_MAX_FINE_CHARACTERS = 6_000
# Units that are looked at, and pairs of units that difflib may compare: a second or two.
_MAX_RETRIES = 8_000_000
_MAX_PAIRS = 4_000_000
_MAX_PAIRS_AT_ONCE = 40_000
# With less in common, a changed passage reads better as a whole than in shreds.
_MIN_COMMON = 0.25

# As str.splitlines does, which would make all lines at once.
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
"""Where equal units begin in the old text and in the new one, and how many they are."""


@dataclass(slots=True)
class _Budget:
    """What may still be done of what takes long."""

    looks: int = _MAX_RETRIES
    pairs: int = _MAX_PAIRS


def differences(old: str, new: str) -> list[Piece]:
    """Pieces in order: those that are not ADDED make `old`, those that are not REMOVED `new`. None
    is empty, and no two of a kind follow each other."""
    budget, pieces = _Budget(), _Pieces()
    before, after = list(_units(old)), list(_units(new))
    for gap_before, gap_after, same in _steps(before, after, _runs(before, after, budget)):
        pieces.add_changed("".join(gap_before), "".join(gap_after), budget)
        pieces.add(Kind.SAME, "".join(same))
    return pieces.found


def has_more_units(texts: Iterable[str], *, than: int) -> bool:
    """Whether texts have more lines and sentences together: what time and memory go by."""
    units = chain.from_iterable(map(_units, texts))
    return next(islice(units, than, None), None) is not None


def characters_changed(pieces: Sequence[Piece]) -> tuple[int, int]:
    """How many characters were added, and how many removed."""
    counts = Counter[Kind]()
    for piece in pieces:
        counts[piece.kind] += len(piece.text)
    return counts[Kind.ADDED], counts[Kind.REMOVED]


class _Pieces:
    """Pieces as they are found; those of a kind that follow each other become one."""

    def __init__(self) -> None:
        self.found: list[Piece] = []

    def add(self, kind: Kind, text: str) -> None:
        if not text:
            return
        if self.found and self.found[-1].kind is kind:
            text = self.found.pop().text + text
        self.found.append(Piece(kind, text))

    def add_changed(self, old: str, new: str, budget: _Budget) -> None:
        """A stretch that is not the same: by words, where that can be read."""
        if old and new and max(len(old), len(new)) <= _MAX_FINE_CHARACTERS:
            for piece in _by_words(old, new, budget):
                self.add(piece.kind, piece.text)
            return
        self.add(Kind.REMOVED, old)
        self.add(Kind.ADDED, new)


def _units(text: str) -> Iterator[str]:
    """Lines with their ends, and the sentences of long ones: together they are the text."""
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
    """Whether it is less than a word, and between two changes rather a chance than the same."""
    return _letters(same) <= 1 and "\n" not in same


def _letters(text: str) -> int:
    return len(_WORD_CHARACTER.findall(text))


Step = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _steps(old: Sequence[str], new: Sequence[str], runs: Sequence[Run]) -> Iterator[Step]:
    """(removed, added, the same after them), to the end of both."""
    at_old = at_new = 0
    for in_old, in_new, count in [*runs, (len(old), len(new), 0)]:
        yield old[at_old:in_old], new[at_new:in_new], old[in_old : in_old + count]
        at_old, at_new = in_old + count, in_new + count


def _runs(old: Sequence[str], new: Sequence[str], budget: _Budget) -> list[Run]:
    """What is the same, in order: as much as can be found with this budget."""
    found: list[Run] = []
    waiting = [(0, len(old), 0, len(new))]
    while waiting:
        first, last, new_first, new_last = waiting.pop()
        budget.looks -= last - first + new_last - new_first
        if budget.looks < 0:
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
            found += _compared(old, new, span, budget)
    return _joined(sorted(found))


def _joined(runs: Sequence[Run]) -> list[Run]:
    """Runs that follow each other in both texts as one."""
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
    """Units that stand once in either part of the texts, in their longest common order."""
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
    """As many of the pairs, which rise in their first, as rise in their second too."""
    ends: list[int] = []  # The least second that ends an order of this length,
    holders: list[int] = []  # and which pair that is.
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


def _compared(old: Sequence[str], new: Sequence[str], span: Span, budget: _Budget) -> list[Run]:
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
