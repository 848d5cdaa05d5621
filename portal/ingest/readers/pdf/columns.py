"""Detection of tables without rules on a PDF page: rows whose cells are below each other.

Programs write a table row by row. So only lines that follow each other in the file become rows,
which distinguishes tables from text that is set in columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from portal.ingest.readers.pdf.characters import JOINER, Characters
from portal.ingest.readers.pdf.tables import Table

_MAX_WORDS = 20_000  # Of a page.
_MIN_ROWS = 3
_MIN_FILLED = 0.6  # Share of the cells.
_MAX_COLUMNS = 40
# In multiples of the size of the text.
_MIN_GAP = 0.9  # Between two cells; spaces of justified lines are narrower.
_MAX_SHIFT = 0.3  # Of the baselines in one row.
_MAX_DISTANCE = 2.6  # Of two rows.
_MAX_LEADING = 1.5  # Of two lines of one cell.
_TOLERANCE = 3.0  # points
_MIN_ALIGNED = 0.7  # Share of the cells of a column.
_MAX_MEAN_CELL = 40  # Characters; one column, such as a description, may have longer cells.
_FULL_LINE = 0.92  # Of the width of its column; text set in columns has lines as wide as that.
_MIN_LINE = 15  # Characters.
_EMPTY_CELLS = {"-", "–", "—", "x", "✓", "✔", "✗", "●", "○"}
_WORD = re.compile(r"[^\s\0\x02]+")
_LEADER = re.compile(r"(?:\s*[.·…]){4,}\s*$")
_TITLE_AND_PAGE = re.compile(r"(?:\s*[.·…]){5,}\s*\w+\s*$")
_SECTION = re.compile(r"(?:\d+|[A-Z])\.\d+(?:\.\d+)*(?:\s|$)")
_FIGURE = re.compile(r"[^\W\d_]{0,4}[^\w\s]{0,2}\s?\d[\d.,:/–-]*\s?[^\s\d]{0,8}")


class _Cell(NamedTuple):
    text: str
    left: float
    right: float


@dataclass(slots=True)
class _Row:
    """The cells of one line of a page, from left to right."""

    baseline: float
    size: float
    cells: list[_Cell] = field(default_factory=list)

    def continues(self, cell: _Cell, baseline: float, size: float) -> bool:
        """Return whether the next word in the file is further right on the same line."""
        is_level = abs(self.baseline - baseline) <= _MAX_SHIFT * size
        return is_level and cell.left >= self.cells[-1].right - size

    def add(self, word: _Cell) -> None:
        """Add a word to the last cell, or as the next one if the gap is wide."""
        last = self.cells[-1]
        if word.left - last.right < _MIN_GAP * self.size:
            self.cells[-1] = _Cell(f"{last.text} {word.text}", last.left, word.right)
        else:
            self.cells.append(word)


@dataclass(slots=True, eq=False)
class _Column:
    left: float
    right: float

    def holds(self, cell: _Cell) -> bool:
        return cell.left < self.right and self.left < cell.right


def find_tables(characters: Characters, lines: Sequence[re.Match[str]]) -> list[Table]:
    """Return the tables among the lines of a page, which are matches at their character numbers."""
    rows, tables, begin = list(_rows(characters, lines)), [], 0
    while begin < len(rows):
        if len(rows[begin].cells) == 1:
            begin += 1
            continue
        found = _Found(rows[begin])
        end = begin + 1
        while end < len(rows) and found.takes(rows[end]):
            end += 1
        table = found.table()
        if table:
            tables.append(table)
        # A line above a table may fit its columns, so later rows are tried as the first; in long
        # runs not all of them.
        begin = end if table else begin + max(1, (end - begin) // 4)
    return tables


class _Found:
    """A table that rows are added to, from the top."""

    def __init__(self, row: _Row) -> None:
        self._rows = [row]
        self._columns = [_Column(cell.left, cell.right) for cell in row.cells]

    def takes(self, row: _Row) -> bool:
        """Add the row below if its cells fit the columns; return whether they do."""
        above = self._rows[-1]
        size = max(row.size, above.size)
        if not 0 < above.baseline - row.baseline <= _MAX_DISTANCE * size:
            return False
        columns = [_Column(column.left, column.right) for column in self._columns]
        taken: list[_Column] = []
        for cell in row.cells:
            held = [column for column in columns if column.holds(cell)]
            is_wide = len(held) > 1
            fits = len(held) <= 2 and len(row.cells) >= max(2, len(columns) - 1)  # noqa: PLR2004
            if (is_wide and not fits) or any(column in taken for column in held):
                return False
            if not held:
                held = [_Column(cell.left, cell.right)]
                columns += held
            elif not is_wide:
                held[0].left = min(held[0].left, cell.left)
                held[0].right = max(held[0].right, cell.right)
            taken += held
        columns.sort(key=lambda column: column.left)
        touch = any(a.right > b.left for a, b in pairwise(columns))
        if len(columns) < 2 or len(columns) > _MAX_COLUMNS or touch:  # noqa: PLR2004 - one is text
            return False
        self._rows.append(row)
        self._columns = columns
        return True

    def table(self) -> Table | None:
        """Return the table; None if the rows do not form one."""
        rows, columns = self._rows, self._columns
        while rows and len(rows[-1].cells) == 1 and rows[-1].cells[0].left < columns[0].right:
            rows = rows[:-1]  # A title or a sentence below, which is narrow by chance.
        placed = [_place_cells(row, columns) for row in rows]
        if sum(len(row.cells) * 2 > len(columns) for row in rows) < _MIN_ROWS:
            return None
        if sum(len(row.cells) for row in rows) < _MIN_FILLED * len(rows) * len(columns):
            return None
        cells = [[row[n] for row in placed if row[n]] for n in range(len(columns))]
        if not all(cells) or not _are_cells(cells):
            return None
        return Table(
            columns[0].left,
            rows[-1].baseline - rows[-1].size / 2,
            columns[-1].right,
            rows[0].baseline + rows[0].size,
            [list(texts) for texts in _texts(rows, placed)],
        )


def _rows(characters: Characters, lines: Sequence[re.Match[str]]) -> Iterator[_Row]:
    """Yield the visual lines of a page in the order of its text, cut into cells at wide gaps."""
    words = 0
    row: _Row | None = None
    for line in lines:
        size = characters.height(line.start())
        for word in _WORD.finditer(line.string, *line.span()):
            words += 1
            if words > _MAX_WORDS:
                return
            left, right, baseline = characters.place(word.start(), word.end() - 1)
            cell = _Cell(word.group().replace(JOINER, ""), left, right)
            if row is None or not row.continues(cell, baseline, size):
                if row:
                    yield row
                row = _Row(baseline, size, [cell])
            else:
                row.add(cell)
    if row:
        yield row


def _place_cells(row: _Row, columns: Sequence[_Column]) -> list[_Cell | None]:
    """Return the cells of a row by column, None for empty ones; a wide cell is in its first
    column."""
    free = list(row.cells)
    placed: list[_Cell | None] = []
    for column in columns:
        cell = next((cell for cell in free if column.holds(cell)), None)
        if cell:
            free.remove(cell)
        placed.append(cell)
    return placed


def _are_cells(columns: Sequence[Sequence[_Cell | None]]) -> bool:
    """Return whether these are columns of a table, not of text or of a table of contents."""
    kept = [[cell for cell in column if cell] for column in columns]
    have_words = all(2 * sum(map(_has_word, column)) >= len(column) for column in kept)
    if not have_words or not all(map(_is_aligned, kept)) or _are_contents(kept):
        return False
    lengths = [fmean(len(cell.text) for cell in column) for column in kept]
    if len(kept) == 2:  # noqa: PLR2004 - only figures tell two columns from labels and text
        figures = sum(bool(_FIGURE.fullmatch(cell.text)) for cell in kept[1])
        return figures >= max(_MIN_ROWS, len(kept[1]) - 1) and lengths[0] <= _MAX_MEAN_CELL
    are_short = sum(length > _MAX_MEAN_CELL for length in lengths) <= 1
    return are_short and sum(map(_is_text, kept)) < 2  # noqa: PLR2004


def _has_word(cell: _Cell) -> bool:
    """Return whether a cell has a word, unlike the lines of a drawn tree and the signs of code."""
    return any(map(str.isalnum, cell.text)) or cell.text in _EMPTY_CELLS


def _are_contents(columns: Sequence[Sequence[_Cell]]) -> bool:
    """Return whether the last column has the pages of numbered sections or, with one column before
    it, of titles."""
    if any(_TITLE_AND_PAGE.search(cell.text) for column in columns for cell in column):
        return True
    pages = [int(cell.text) for cell in columns[-1] if cell.text.isdecimal()]
    if 2 * len(pages) <= len(columns[-1]) or pages != sorted(pages):
        return False
    titles = [cell for column in columns[:2] for cell in column]
    return len(columns) == 2 or any(_SECTION.match(cell.text) for cell in titles)  # noqa: PLR2004


def _is_aligned(column: Sequence[_Cell]) -> bool:
    edges = (
        [cell.left for cell in column],
        [cell.right for cell in column],
        [(cell.left + cell.right) / 2 for cell in column],
    )
    return any(
        sum(abs(place - median(places)) <= _TOLERANCE for place in places)
        >= _MIN_ALIGNED * len(column)
        for places in edges
    )


def _is_text(column: Sequence[_Cell]) -> bool:
    """Return whether most lines of a column are as wide as it is."""
    width = max(cell.right for cell in column) - min(cell.left for cell in column)
    full = [
        cell.right - cell.left >= _FULL_LINE * width and len(cell.text) > _MIN_LINE
        for cell in column
    ]
    return 2 * sum(full) > len(full)


def _texts(
    rows: Sequence[_Row], placed: Sequence[Sequence[_Cell | None]]
) -> Iterator[Sequence[str]]:
    """Yield the texts of the rows; a second line of one cell belongs to the row above."""
    last: list[str] | None = None
    before = 0.0
    for row, cells in zip(rows, placed, strict=True):
        texts = [_LEADER.sub("", cell.text) if cell else "" for cell in cells]
        is_rest = (
            len(row.cells) == 1
            and not cells[0]
            and not _FIGURE.fullmatch(row.cells[0].text)
            and before - row.baseline <= _MAX_LEADING * row.size
        )
        before = row.baseline
        if is_rest and last is not None:
            last = [f"{above} {text}".strip() for above, text in zip(last, texts, strict=True)]
            continue
        if last is not None:
            yield last
        last = texts
    if last is not None:
        yield last
