"""Text of a sheet's rows: titles as text, and tables separated by empty rows."""

from __future__ import annotations

from collections.abc import Sequence

from portal.ingest.formats.texts.readable_text import ReadableText, one_line

_ROWS_COMPARED = 20


class SheetText:
    """Takes the rows of sheets, top to bottom; `readable` holds the text."""

    def __init__(self) -> None:
        self.readable = ReadableText()
        self._sheet = ""
        self._title = ""
        # The first rows of the open table, which show how many empty columns precede it: the header
        # may have no name for the column of row labels.
        self._rows: list[Sequence[str]] | None = None
        self._left = 0
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
        elif self._rows is not None:
            self._rows.append(cells[: filled[-1] + 1])
            if len(self._rows) == _ROWS_COMPARED:
                self._write_rows()
        elif self._in_table:
            self._write_row(cells[: filled[-1] + 1])
        elif len(filled) == 1:
            # A title or a note, above a table or alone.
            self._title = one_line(cells[filled[0]])
            self.readable.add_block(self._title)
        else:
            self._rows = [cells[: filled[-1] + 1]]
            self._in_table = True
            self.readable.open_table(self._title or self._sheet)

    def _write_rows(self) -> None:
        rows, self._rows = self._rows or [], None
        self._left = min((_empty_count(row) for row in rows), default=0)
        for row in rows:
            self._write_row(row)

    def _write_row(self, cells: Sequence[str]) -> None:
        self.readable.add_row(cells[min(_empty_count(cells), self._left) :])

    def close_table(self) -> None:
        if self._in_table:
            self._write_rows()
            self.readable.close_table()
            self._in_table, self._title = False, ""


def _empty_count(cells: Sequence[str]) -> int:
    """Return the number of empty cells before the first with words."""
    return next(place for place, cell in enumerate(cells) if cell.strip())
