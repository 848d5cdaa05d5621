"""Excerpts for display: as paragraphs, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from portal.domain.search import Span
from portal.text.layout.outlines import SEPARATOR
from portal.text.layout.tables import header_count, split_cells

_BULLET = re.compile(r"\s*[-*+•]\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, an item or a cell, with the spans in it to mark."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class ExcerptBlock:
    """A paragraph, the items of a list without their bullets, or the rows of a table with its
    header. The `caption` is known only if the excerpt begins within the table."""

    paragraph: Piece | None = None
    items: tuple[Piece, ...] = ()
    rows: tuple[tuple[Piece, ...], ...] = ()
    header: tuple[Piece, ...] = ()
    caption: str = ""


def excerpt_blocks(
    excerpt: str,
    highlights: Sequence[Span] = (),
    context: str | None = None,
    *,
    has_header: bool = False,
    is_quote: bool = False,
) -> list[ExcerptBlock]:
    """Split an excerpt into blocks, which together have all of its words. `context` is the caption
    and header of its table, from further up in the document; `has_header` is true if the excerpt
    itself begins with a header.

    A single line with bars counts as a row only in a quote or below the header of its table;
    elsewhere it may be prose. Rows without their last cells are filled up with empty ones.
    """
    caption, _, last_line = (context or "").rpartition("\n")
    header = tuple(
        _piece(last_line, (), *cell) for cell in split_cells(last_line, 0, len(last_line))
    )
    blocks: list[ExcerptBlock] = []
    for table, grouped in groupby(_lines(excerpt), key=lambda line: line.table):
        lines = [line.cells for line in grouped]
        width = max(map(len, lines))
        is_under_header = not blocks and width <= len(header)
        if table is not None and (len(lines) > 1 or is_under_header or is_quote):
            width = len(header) if is_under_header else width
            rows = tuple(
                _filled([_piece(excerpt, highlights, *cell) for cell in row], width)
                for row in lines
            )
            above, begins = header if is_under_header else (), has_header
            if is_under_header:
                begins = _texts(rows[0]) == _texts(header)
            elif blocks:
                # The first row below a paragraph may be a header, below another table it rarely is.
                begins = not blocks[-1].rows and header_count(list(map(_texts, rows))) > 0
            if begins:
                above, rows = rows[0], rows[1:]
            blocks.append(ExcerptBlock(None, (), rows, above, caption if is_under_header else ""))
        else:
            whole = [(line[0][0], line[-1][1]) for line in lines]
            blocks += _paragraphs_and_lists(excerpt, highlights, whole)
    return blocks


def headings_above(heading: str | None, title: str, excerpt: str) -> str:
    """Return the path of headings to an excerpt, without the document's title and without a heading
    that the excerpt itself begins with."""
    path = (heading or "").split(SEPARATOR)
    if path[-1] == " ".join(excerpt.partition("\n")[0].split()):
        path.pop()
    if path and path[0] == title:
        path.pop(0)
    return SEPARATOR.join(path)


def _paragraphs_and_lists(
    text: str, highlights: Sequence[Span], lines: Iterable[tuple[int, int]]
) -> Iterator[ExcerptBlock]:
    signed = ((_BULLET.match(text, *ends), ends) for ends in lines)
    for is_list, grouped in groupby(signed, key=lambda each: each[0] is not None):
        pieces = (
            _piece(text, highlights, sign.end() if sign else start, end)
            for sign, (start, end) in grouped
        )
        if is_list:
            yield ExcerptBlock(items=tuple(pieces))
        else:
            yield from map(ExcerptBlock, pieces)


class _Line(NamedTuple):
    """A line with the ranges of its cells, and the number of its table; None without bars."""

    cells: tuple[tuple[int, int], ...]
    table: int | None


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not empty. Empty lines are between tables, not between rows."""
    start = tables = 0
    for line in text.split("\n"):
        end = start + len(line)
        if line.strip():
            cells = tuple(split_cells(text, start, end))
            yield _Line(cells, tables if len(cells) > 1 else None)
        else:
            tables += 1
        start = end + 1


def _filled(cells: Sequence[Piece], width: int) -> tuple[Piece, ...]:
    return (*cells, *[Piece("", ())] * (width - len(cells)))


def _texts(row: Iterable[Piece]) -> tuple[str, ...]:
    return tuple(cell.text.strip() for cell in row)


def _piece(text: str, highlights: Iterable[Span], start: int, end: int) -> Piece:
    inside = (
        replace(
            highlight,
            start=max(highlight.start, start) - start,
            end=min(highlight.end, end) - start,
        )
        for highlight in highlights
    )
    return Piece(text[start:end], tuple(one for one in inside if one.start < one.end))
