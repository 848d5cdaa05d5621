"""Rows and cells of a table in plain text, one row per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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
    """Return how many of the first rows of a table without a marked header read as one: 0, 1 or 2.

    A header names the columns differently, in short words rather than figures: every column after
    the first, or at least half of them if there are figures below.
    """
    if _has_header_of_two(rows):
        return 2
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
    return int((is_named or all(first[1:])) and _are_names(names))


def _has_header_of_two(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the second row names the columns that cells of the first row span.

    Such a cell leaves empty ones behind, and one that spans both rows is repeated in the second.
    Figures must follow, for rows of data with a label in common look the same.
    """
    if len(rows) < 3:  # noqa: PLR2004
        return False
    first, second, below = zip(*zip_longest(*rows[:3], fillvalue=""), strict=True)
    left = next((at for at, cell in enumerate(first) if cell), len(first))
    gaps = {at for at, cell in enumerate(first) if at > left and second[at] and not cell}
    spanned = gaps | {at - 1 for at in gaps}
    others = [(first[at], second[at]) for at in range(len(first)) if at not in spanned]
    names = join_header(rows[:2])
    if not gaps or len(names) - len(gaps) == 1 or len(set(names)) < len(names):
        return False
    if not all(second[at] for at in spanned) or not _are_names([*filter(None, second)]):
        return False
    if any(a and b and a != b for a, b in others) or any(map(_LABELLED.search, first)):
        return False
    figures = [bool(_NUMBER.fullmatch(below[at])) for at in spanned]
    return any(figures) if any(a and a == b for a, b in others) else all(figures)


def join_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return one name per column; above the last row, a name spans the empty cells after it."""
    width = max(map(len, rows), default=0)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    for row in padded[:-1]:
        for column in range(1, width):
            row[column] = row[column] or row[column - 1]
    return [" ".join(dict.fromkeys(filter(None, names))) for names in zip(*padded, strict=True)]


def _are_names(cells: Sequence[str]) -> bool:
    """Return whether cells may name columns, and are short on average."""
    is_short = sum(map(len, cells)) <= _MAX_MEAN_HEADER_CELL * len(cells)
    return is_short and all(map(_is_name, cells))


def _is_name(cell: str) -> bool:
    """Return whether a cell may name a column."""
    return (
        len(cell) <= _MAX_HEADER_CELL
        and not cell.endswith((":", "："))
        and not _NUMBER.fullmatch(cell)
    )
