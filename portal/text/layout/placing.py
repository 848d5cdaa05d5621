"""Places of a text's words on a page: ranges of the stored text, found again among the characters
that the page shows.

The two differ: the stored text is normalised, its lines are joined, hyphens and running lines are
gone, and the cells of a table are in rows. So both are compared without spaces, punctuation of
lines, case and marks, and text that is not found whole is looked for in parts.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

Range = tuple[int, int]
Box = tuple[int, int, int, int]
"""Left, top, right, bottom."""

_MIN_SHARE = 0.8  # of the characters must be found, or the place is not known.
_MIN_PART = 6  # Characters; shorter parts occur all over a page.
_NEAR = 300  # Characters: how far a short part may be from its neighbours.
# Characters that are added or removed when lines are joined and cells separated.
_IGNORED = frozenset("|-\u00ad\u2010\u2011\u2012\u2013\u2014\u2212\x02•·▪●○◆■□►✓�")
_PARTS = re.compile(r"[^\n|]+?(?:[.!?。！？；;]+|(?=[\n|])|$)")
_SAME_LINE = 0.5  # of the height
_WORD_GAP = 1.0  # times the height: wider ones are between columns.
_MARKS = 3.0  # times the height: within a marked line


class PlacedPage:
    """The stored text of a page, and the characters that the page shows."""

    def __init__(self, stored: str, shown: str) -> None:
        self._stored = stored
        self._key, self._places = _letters_with_places(stored)
        self._shown_key, self._shown_places = _letters_with_places(shown)

    def find(self, start: int, end: int) -> list[Range]:
        """Return the ranges of shown characters that have characters `start` to `end` of the stored
        text of the page; empty if fewer than four fifths of them are found."""
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        if first >= last:
            return []
        whole = self._find_whole(first, last)
        found = [whole] if whole is not None else self._in_parts(start, end)
        count = sum(high - low for low, high in found)
        if count < _MIN_SHARE * (last - first):
            return []
        return [
            (self._shown_places[low], self._shown_places[high - 1] + 1)
            for low, high in sorted(found)
        ]

    def _find_whole(self, first: int, last: int) -> Range | None:
        """Return the occurrence that comes at the same count as in the stored text, else the one
        nearest to where it is expected."""
        words = self._key[first:last]
        shown = list(_occurrences(self._shown_key, words))
        if not shown:
            return None
        stored = list(_occurrences(self._key, words))
        if len(shown) == len(stored) and first in stored:
            begin = shown[stored.index(first)]
        else:
            begin = min(shown, key=lambda place: abs(place - self._expected(first)))
        return begin, begin + len(words)

    def _expected(self, place: int) -> int:
        return place * len(self._shown_key) // max(1, len(self._key))

    def _in_parts(self, start: int, end: int) -> list[Range]:
        found: list[Range] = []
        hint: int | None = None
        for part in _PARTS.finditer(self._stored, start, end):
            first = bisect_left(self._places, part.start())
            last = bisect_left(self._places, part.end())
            expected = self._expected(first) if hint is None else hint
            for piece in self._halves(first, last, expected, is_sure=hint is not None):
                found.append(piece)
                hint = piece[1]
        return _drop_contained(found)

    def _halves(self, first: int, last: int, hint: int, *, is_sure: bool) -> Iterator[Range]:
        """Yield the place of a range of characters, or of those of its halves that are found."""
        if first >= last:
            return
        words = self._key[first:last]
        after = self._shown_key.find(words, hint)
        before = self._shown_key.rfind(words, 0, hint + len(words) - 1)
        near = [place for place in (after, before) if place >= 0]
        if near:
            place = min(near, key=lambda one: abs(one - hint))
            if len(words) >= _MIN_PART or (is_sure and abs(place - hint) <= _NEAR):
                yield place, place + len(words)
        elif len(words) >= 2 * _MIN_PART:
            middle = (first + last) // 2
            for low, high in ((first, middle), (middle, last)):
                for piece in self._halves(low, high, hint, is_sure=is_sure):
                    yield piece
                    hint, is_sure = piece[1], True


def rectangles(ranges: Iterable[Range], shown: str, box: Callable[[int], Box]) -> list[Box]:
    """Return one rectangle for each line of the ranges of shown characters."""
    drawn: list[Box] = []
    for start, end in ranges:
        current: Box | None = None
        for index in range(start, end):
            one = box(index)
            if shown[index].isspace() or one[0] >= one[2]:
                continue
            if current is not None and _is_beside(current, one, _MARKS):
                current = _box_around(current, one)
            else:
                drawn += [current] if current else []
                current = one
        drawn += [current] if current else []
    return drawn


def lines_of(shown: str, box: Callable[[int], Box]) -> list[list[tuple[str, Box]]]:
    """Return the lines of a page as pieces without wide gaps, each with its rectangle."""
    lines: list[list[tuple[str, Box]]] = []
    place = 0
    for line in shown.split("\n"):
        pieces = list(_pieces(line, place, box))
        lines += [pieces] if pieces else []
        place += len(line) + 1
    return lines


def _pieces(line: str, place: int, box: Callable[[int], Box]) -> Iterator[tuple[str, Box]]:
    text, current = "", None
    for index, character in enumerate(line, place):
        one = box(index)
        if one[0] >= one[2] or character.isspace():
            text += " " if text and not text.endswith(" ") else ""
        elif current is None or _is_beside(current, one, _WORD_GAP):
            current = _box_around(current, one) if current else one
            text += character
        else:
            yield text, current
            text, current = character, one
    if current is not None:
        yield text, current


def _is_beside(current: Box, one: Box, gap: float) -> bool:
    height = max(1, min(current[3] - current[1], one[3] - one[1]))
    overlap = min(current[3], one[3]) - max(current[1], one[1])
    return overlap >= _SAME_LINE * height and -height <= one[0] - current[2] <= gap * height


def _box_around(one: Box, other: Box) -> Box:
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _drop_contained(found: Iterable[Range]) -> list[Range]:
    """Return ranges without those within another, because repeated cells are shown once."""
    kept: list[Range] = []
    for low, high in sorted(set(found)):
        if not kept or high > kept[-1][1]:
            kept.append((max(low, kept[-1][1]) if kept else low, high))
    return kept


def _occurrences(text: str, words: str) -> Iterator[int]:
    place = text.find(words)
    while place >= 0:
        yield place
        place = text.find(words, place + 1)


def _letters_with_places(text: str) -> tuple[str, list[int]]:
    """Return the characters to compare, and the index in `text` of each."""
    parts: list[str] = []
    places: list[int] = []
    for index, character in enumerate(text):
        letters = _letters(character)
        parts.append(letters)
        places += [index] * len(letters)
    return "".join(parts), places


@lru_cache(maxsize=65536)
def _letters(character: str) -> str:
    if character in _IGNORED:
        return ""
    decomposed = unicodedata.normalize("NFKD", character).casefold()
    return "".join(
        mark
        for mark in decomposed
        if not mark.isspace()
        and mark not in _IGNORED
        and unicodedata.category(mark) not in {"Mn", "Me", "Cc", "Cf", "Co", "Cs", "Cn"}
    )
