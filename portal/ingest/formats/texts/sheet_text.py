"""Text of a sheet's rows: titles as text, and tables separated by empty rows."""

from __future__ import annotations

from collections.abc import Sequence

from portal.ingest.formats.texts.readable_text import (
    MAX_CAPTION_LENGTH,
    ReadableText,
    one_line,
)

_ROWS_COMPARED = 20
_MAX_TITLES = 20  # More lines are a text.


class SheetText:
    """Takes the rows of sheets, top to bottom; `readable` holds the text."""

    def __init__(self) -> None:
        self.readable = ReadableText()
        self._sheet = ""
        self._titles: list[str] = []  # The last lines, up to an empty row or a table.
        self._after_empty = False
        # The first rows of the open table, which show how many empty columns precede it: the header
        # may have no name for the column of row labels.
        self._rows: list[Sequence[str]] | None = None
        self._left = 0
        self._in_table = False

    def open_sheet(self, title: str, *, is_heading: bool) -> None:
        self.close_table()
        self._sheet, self._titles = title if is_heading else "", []
        if is_heading:
            self.readable.add_heading(1, title)

    def add_row(self, cells: Sequence[str]) -> None:
        filled = [place for place, cell in enumerate(cells) if cell.strip()]
        if not filled:
            self.close_table()
            self._after_empty = True
        elif self._rows is not None:
            self._rows.append(cells[: filled[-1] + 1])
            if len(self._rows) == _ROWS_COMPARED:
                self._write_rows()
        elif self._in_table:
            self._write_row(cells[: filled[-1] + 1])
        elif len(filled) == 1:
            # A title or a note, above a table or alone.
            title = one_line(cells[filled[0]])
            self._titles = (
                [title] if self._after_empty else [*self._titles[1 - _MAX_TITLES :], title]
            )
            self._after_empty = False
            self.readable.add_block(title)
        else:
            self._rows = [cells[: filled[-1] + 1]]
            self._in_table = True
            self.readable.open_table(self._caption())

    def _caption(self) -> str:
        """Return the lines above the table; only the last if they are longer than a title."""
        caption = " – ".join(self._titles)
        return (caption if len(caption) <= MAX_CAPTION_LENGTH else self._titles[-1]) or self._sheet

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
            self._in_table, self._titles = False, []


def _empty_count(cells: Sequence[str]) -> int:
    """Return the number of empty cells before the first with words."""
    return next(place for place, cell in enumerate(cells) if cell.strip())
