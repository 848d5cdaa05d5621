"""Excerpts of search results as pages show them: paragraphs, and rows of tables as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from portal.domain.search import SearchHit, Span
from portal.text.layout.tables import BORDER


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph or a cell, with the spans of it to mark."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class ExcerptBlock:
    """A paragraph, or the rows of a table: then `paragraph` is None. `header` and `caption` are
    known where the excerpt begins within the table."""

    paragraph: Piece | None = None
    rows: tuple[tuple[Piece, ...], ...] = ()
    header: tuple[str, ...] = ()
    caption: str = ""


def excerpt_blocks(hit: SearchHit) -> list[ExcerptBlock]:
    """Return the excerpt of a result in blocks. Together they have all of its words.

    A single line with bars is a row only after the header of its table; otherwise it may be prose.
    """
    caption, _, last_line = (hit.context or "").rpartition("\n")
    header = tuple(_text_of_cells(last_line))
    blocks: list[ExcerptBlock] = []
    for width, grouped in groupby(_lines(hit), key=len):
        lines = list(grouped)
        is_under_header = not blocks and width == len(header)
        if width > 1 and (len(lines) > 1 or is_under_header):
            is_continued = is_under_header and _texts(lines[0]) != header
            above = (header, caption) if is_continued else ((), "")
            blocks.append(ExcerptBlock(None, tuple(lines), *above))
        else:
            blocks += (ExcerptBlock(_joined(line)) for line in lines)
    return blocks


def _lines(hit: SearchHit) -> Iterator[tuple[Piece, ...]]:
    """Yield the cells of each line that is not empty; a line without bars is one cell."""
    start = 0
    for line in hit.excerpt.split("\n"):
        if line.strip():
            yield tuple(_piece(hit, start + first, start + last) for first, last in _cells(line))
        start += len(line) + 1


def _cells(line: str) -> Iterator[tuple[int, int]]:
    start = 0
    for border in BORDER.finditer(line):
        yield start, max(start, border.start() - 1)
        start = min(border.end() + 1, len(line))
    yield start, len(line)


def _text_of_cells(line: str) -> Iterator[str]:
    return (line[start:end].strip() for start, end in _cells(line))


def _texts(row: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(cell.text.strip() for cell in row)


def _joined(cells: Sequence[Piece]) -> Piece:
    """Join the cells of a line again, for a line that is no row."""
    text, spans = "", []
    for number, cell in enumerate(cells):
        text += " | " if number else ""
        spans += [Span(len(text) + one.start, len(text) + one.end) for one in cell.spans]
        text += cell.text
    return Piece(text, tuple(spans))


def _piece(hit: SearchHit, start: int, end: int) -> Piece:
    inside = (
        replace(one, start=max(one.start, start) - start, end=min(one.end, end) - start)
        for one in hit.highlights
    )
    return Piece(hit.excerpt[start:end], tuple(one for one in inside if one.start < one.end))
