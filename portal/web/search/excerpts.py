"""Excerpts of search results as pages show them: paragraphs, and rows of tables as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from portal.domain.search import SearchHit, Span
from portal.text.layout.tables import split_cells


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
    header = _texts(last_line, split_cells(last_line, 0, len(last_line)))
    blocks: list[ExcerptBlock] = []
    for width, grouped in groupby(_lines(hit.excerpt), key=len):
        lines = list(grouped)
        is_under_header = not blocks and width == len(header)
        if width > 1 and (len(lines) > 1 or is_under_header):
            is_continued = is_under_header and _texts(hit.excerpt, lines[0]) != header
            above = (header, caption) if is_continued else ((), "")
            rows = tuple(tuple(_piece(hit, *cell) for cell in line) for line in lines)
            blocks.append(ExcerptBlock(None, rows, *above))
        else:
            blocks += (ExcerptBlock(_piece(hit, line[0][0], line[-1][1])) for line in lines)
    return blocks


def _lines(text: str) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the ranges of the cells of each line that is not empty; a line without bars is one."""
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if line.strip():
            yield tuple(split_cells(text, start, end))
        start = end + 1


def _texts(text: str, cells: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(text[start:end].strip() for start, end in cells)


def _piece(hit: SearchHit, start: int, end: int) -> Piece:
    inside = (
        replace(one, start=max(one.start, start) - start, end=min(one.end, end) - start)
        for one in hit.highlights
    )
    return Piece(hit.excerpt[start:end], tuple(one for one in inside if one.start < one.end))
