"""Rows and cells of a table in plain text, one row per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portal.domain.structure import Block

CELL_BORDER = " | "
# A trimmed text may begin or end in the middle of a border, beside an empty cell.
BORDER = re.compile(r"(?:^|(?<= ))\|(?= |$)")
_NUMBER = re.compile(r"[-+(]?[¥$€£￥]?\s?\d[\d,.\s:/年月日-]*\s?[%％)]?[^\W\d]{0,3}")
_MAX_HEADER_CELL = 40


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table; `cells` are the ranges of its cells, empty ones included."""

    start: int
    end: int
    cells: tuple[tuple[int, int], ...]
    is_header: bool

    def texts(self, text: str) -> tuple[str, ...]:
        """Return the texts of the cells."""
        return tuple(text[start:end] for start, end in self.cells)


def table_rows(text: str, table: Block) -> Iterator[Row]:
    """Yield the rows of a table in `text`, including the header, without empty lines."""
    bars = frozenset(table.bars)
    start = table.start
    while start < table.end:
        end = text.find("\n", start, table.end)
        end = table.end if end < 0 else end
        if text[start:end].strip():
            yield Row(start, end, tuple(_cells(text, start, end, bars)), start < table.body)
        start = end + 1


def _cells(text: str, start: int, end: int, bars: frozenset[int]) -> Iterator[tuple[int, int]]:
    cell = start
    for border in BORDER.finditer(text[start:end]):
        bar = start + border.start()
        if bar not in bars:
            yield cell, max(cell, bar - 1)
            cell = min(bar + 2, end)
    yield cell, end


def header_count(rows: Sequence[Sequence[str]]) -> int:
    """Return 1 if the first row of a table without a marked header reads as one, else 0.

    A header names every column, differently, in short words rather than figures.
    """
    first = [cell.strip() for cell in rows[0]] if len(rows) > 1 else []
    named = first[1:] if first and not first[0] else first
    is_header = (
        len(first) > 1
        and all(named)
        and len(set(named)) == len(named)
        and not any(
            len(cell) > _MAX_HEADER_CELL or cell.endswith((":", "：")) or _NUMBER.fullmatch(cell)
            for cell in named
        )
    )
    return int(is_header)
