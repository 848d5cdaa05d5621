"""Text of a sheet's rows: titles as text, and tables separated by empty rows."""

from __future__ import annotations

from collections.abc import Sequence

from portal.ingest.formats.readable_text import ReadableText, one_line


class SheetText:
    """Takes the rows of sheets, top to bottom; `readable` holds the text."""

    def __init__(self) -> None:
        self.readable = ReadableText()
        self._sheet = ""
        self._title = ""
        self._left = 0  # The number of empty columns before the open table.
        self._in_table = False

    def open_sheet(self, title: str, *, is_heading: bool) -> None:
        self.close_table()
        self._sheet, self._title = title if is_heading else "", ""
        if is_heading:
            self.readable.add_heading(1, title)

    def add_row(self, cells: Sequence[str]) -> None:
        filled = [place for place, cell in enumerate(cells) if cell.strip()]
        if not filled:
            self.close_table()
        elif self._in_table:
            self._add_cells(cells, filled[0], filled[-1])
        elif len(filled) == 1:
            # A title or a note, above a table or alone.
            self._title = one_line(cells[filled[0]])
            self.readable.add_block(self._title)
        else:
            self._left = filled[0]
            self._in_table = True
            self.readable.open_table(self._title or self._sheet)
            self._add_cells(cells, filled[0], filled[-1])

    def _add_cells(self, cells: Sequence[str], first: int, last: int) -> None:
        self.readable.open_row()
        for cell in cells[min(first, self._left) : last + 1]:
            self.readable.add_cell(cell)
        self.readable.close_row()

    def close_table(self) -> None:
        if self._in_table:
            self.readable.close_table()
            self._in_table, self._title = False, ""
