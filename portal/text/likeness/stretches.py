"""Differences for display: changes with context, the rest folded, in parts of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from portal.text.likeness.differences import Kind, Piece

PART_CHARACTERS = 30_000
# The unchanged context shown around a change: in lines, or characters of long lines.
_CONTEXT_LINES = 3
_CONTEXT_CHARACTERS = 240
# Folded text up to this length can be unfolded in place.
_MAX_UNFOLDED = 4_000


class StretchKind(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"
    FOLDED = "folded"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A displayed piece of a comparison; `text` is None if it is folded and long.

    `lines` counts its line ends.
    """

    kind: StretchKind
    text: str | None
    characters: int
    lines: int


@dataclass(frozen=True, slots=True)
class Part:
    """One of `count` parts of a comparison, numbered from 1."""

    number: int
    count: int
    stretches: tuple[Stretch, ...]


def part_of(pieces: Sequence[Piece], number: int) -> Part:
    """Return a part of the comparison; the last one if the number is too high."""
    parts = list(_parts(stretches(pieces))) or [[]]
    number = min(number, len(parts))
    return Part(number, len(parts), tuple(parts[number - 1]))


def stretches(pieces: Sequence[Piece]) -> Iterator[Stretch]:
    """Yield the stretches to show, in order; together they cover all of the pieces."""
    for place, piece in enumerate(pieces):
        if piece.kind is Kind.SAME:
            yield from _shorten(piece.text, place > 0, place < len(pieces) - 1)
        else:
            yield _shown(StretchKind(piece.kind.value), piece.text)


def _shorten(text: str, has_before: bool, has_after: bool) -> Iterator[Stretch]:
    """Yield unchanged text, folded where it is far from any change."""
    head = _head(text) if has_before else 0
    tail = len(text) - _head(text[::-1]) if has_after else len(text)
    if tail - head <= _CONTEXT_CHARACTERS:
        yield _shown(StretchKind.SAME, text)
        return
    if head:
        yield _shown(StretchKind.SAME, text[:head])
    folded = text[head:tail]
    shown = folded if len(folded) <= _MAX_UNFOLDED else None
    yield Stretch(StretchKind.FOLDED, shown, len(folded), folded.count("\n"))
    if tail < len(text):
        yield _shown(StretchKind.SAME, text[tail:])


def _head(text: str) -> int:
    """Return how many characters the first lines of `text` take."""
    end = 0
    for _ in range(_CONTEXT_LINES):
        end = text.find("\n", end) + 1
        if not end or end > _CONTEXT_CHARACTERS:
            return min(_CONTEXT_CHARACTERS, len(text))
    return end


def _shown(kind: StretchKind, text: str) -> Stretch:
    return Stretch(kind, text, len(text), text.count("\n"))


def _parts(all_of: Iterable[Stretch]) -> Iterator[list[Stretch]]:
    part: list[Stretch] = []
    room = PART_CHARACTERS
    for stretch in all_of:
        for piece in _cut(stretch):
            size = len(piece.text or "")
            if part and size > room:
                yield part
                part, room = [], PART_CHARACTERS
            part.append(piece)
            room -= size
    if part:
        yield part


def _cut(stretch: Stretch) -> Iterator[Stretch]:
    """Split a stretch into pieces that each fit into a part."""
    text = stretch.text
    if text is None or len(text) <= PART_CHARACTERS:
        yield stretch
        return
    for start in range(0, len(text), PART_CHARACTERS):
        yield _shown(stretch.kind, text[start : start + PART_CHARACTERS])
