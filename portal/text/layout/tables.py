"""Rows and cells of a table in plain text, one row per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from portal.domain.documents.structure import Block

CELL_BORDER = " | "
# A trimmed text may begin or end in the middle of a border, beside an empty cell.
BORDER = re.compile(r"(?:^|(?<= ))\|(?= |$)")
_NUMBER = re.compile(r"[-+(]?[¥$€£￥]?\s?\d[\d,.\s:/年月日-]*\s?[%％)]?[^\W\d]{0,3}")
_LABELLED = re.compile(r"\S[:：] *\S")
_MAX_HEADER_CELL = 120
_MAX_MEAN_HEADER_CELL = 40


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
            yield Row(start, end, tuple(split_cells(text, start, end, bars)), start < table.body)
        start = end + 1


def split_cells(
    text: str, start: int, end: int, bars: frozenset[int] = frozenset()
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the cells of a line; `bars` are positions of "|" inside cells."""
    cell = start
    for border in BORDER.finditer(text[start:end]):
        bar = start + border.start()
        if bar not in bars:
            yield cell, max(cell, bar - 1)
            cell = min(bar + 2, end)
    yield cell, end


def header_above(text: str, start: int, above: str | None) -> str | None:
    """Return the header of the table with the row at `start`; None if it has none or begins there.
    `above` is the header of a table that begins before the text."""
    first = _first_row(text, start)
    if not first and above:
        return above
    if first == start or CELL_BORDER not in text[start:].partition("\n")[0]:
        return None
    return _header_at(text, first)


def is_in_first_table(text: str, start: int) -> bool:
    """Return whether only rows of the same table are before the row at `start`."""
    return _first_row(text, start) == 0


def begins_with_header(text: str, start: int, above: str | None) -> bool:
    """Return whether a table begins at `start` with its header; `above` as for `header_above`."""
    is_first = _first_row(text, start) == start and (start > 0 or not above)
    return is_first and _header_at(text, start) is not None


def _first_row(text: str, start: int) -> int:
    """Return where the table with the row at `start` begins."""
    while start and CELL_BORDER in text[(line := text.rfind("\n", 0, start - 1) + 1) : start - 1]:
        start = line
    return start


def _header_at(text: str, start: int) -> str | None:
    """Return the row at `start` if it reads as a header of the next one."""
    lines = text[start:].split("\n", 2)[:2]
    rows = [[line[a:b] for a, b in split_cells(line, 0, len(line))] for line in lines]
    return lines[0] if header_count(rows) else None


def header_count(rows: Sequence[Sequence[str]]) -> int:
    """Return 1 if the first row of a table without a marked header reads as one, else 0.

    A header names the columns differently, in short words rather than figures: every column after
    the first, or at least half of them if there are figures below.
    """
    first = [cell.strip() for cell in rows[0]] if len(rows) > 1 else []
    names = [cell for cell in first if cell]
    if len(first) < 2 or not names or len(set(names)) < len(names):  # noqa: PLR2004
        return 0
    if all(map(_LABELLED.search, names)):  # Version: 3.2 | Approved: 18 March
        return 0
    has_figures = any(
        name and _NUMBER.fullmatch(cell.strip()) for name, cell in zip(first, rows[1], strict=False)
    )
    named = "|".join(first).rstrip("|").split("|")  # Merged cells leave empty ones behind.
    is_named = (all(named[1:]) or has_figures) and 2 * len(names) >= len(first) and len(names) > 1
    is_named = is_named or all(first[1:])
    is_short = sum(map(len, names)) <= _MAX_MEAN_HEADER_CELL * len(names)
    return int(is_named and is_short and all(map(_is_name, names)))


def _is_name(cell: str) -> bool:
    """Return whether a cell may name a column."""
    return (
        len(cell) <= _MAX_HEADER_CELL
        and not cell.endswith((":", "："))
        and not _NUMBER.fullmatch(cell)
    )
