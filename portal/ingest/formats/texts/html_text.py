"""Plain, readable text of a web page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from portal.ingest.formats.texts.readable_text import (
    ReadableText,
    is_item,
    one_line,
    split_items,
    with_address,
)
from portal.text.characters.scripts import WIDE

# Chinese has no spaces, but browsers show one where the source has a line end.
_WIDE_LINE_END = re.compile(f"(?<=[{WIDE}])[ \t\f]*\n[ \t\f\n]*(?=[{WIDE}])")
_SPACES = re.compile(r"[ \t\n\f\r]+")
_AROUND_BREAK = re.compile(r" *\n *")
_ITEM_BORDER = "\x1f"  # Between the items of a list in a cell, until the cell ends.
_PLAIN_LABEL = re.compile(r"-?\d+\.")
_ENDS_ITEM = frozenset(",.;:!?，。；：！？、")
_MAX_CELL_LENGTH = 1_000  # Longer cells with lists or code are parts of a page.
_MAX_REPEATED = 100  # Max length of a spanning cell's text that is repeated in each row.


class _Table:
    """An open data table. A row is written when it ends."""

    def __init__(self) -> None:
        self._row: list[str] | None = None
        self._is_header = True
        self._cell_count = 0
        self._has_rows = False
        # By column: the text of a cell from a row above, and how many more rows it spans.
        self._spanning: dict[int, tuple[str, int]] = {}

    @property
    def in_row(self) -> bool:
        return self._row is not None

    def open_row(self) -> None:
        self._row, self._is_header, self._cell_count = [], True, 0

    def add_cell(self, text: str, columns: int, rows: int, is_header: bool) -> None:
        """Add a cell, and empty ones for the other columns that it spans."""
        if self._row is None:
            return
        self._add_spanning(self._row)
        self._is_header = self._is_header and is_header
        self._cell_count += 1
        for shown in (text, *[""] * (columns - 1)):
            if rows > 1:
                # Each row repeats the spanning cell's text, unless it is long.
                kept = shown if len(shown) <= _MAX_REPEATED else ""
                self._spanning[len(self._row)] = (kept, rows)
            self._row.append(shown)

    def _add_spanning(self, row: list[str]) -> None:
        """Add the cells from rows above that span this place and began in an earlier row."""
        while (above := self._spanning.get(len(row))) is not None:
            row.append(above[0])

    def close_row(self, readable: ReadableText) -> None:
        row, self._row = self._row, None
        if not row:
            return
        self._add_spanning(row)
        self._spanning = {at: (text, n - 1) for at, (text, n) in self._spanning.items() if n > 1}
        if self._cell_count == 1 < len(row) and row[0] and not self._has_rows:
            readable.add_caption(row[0])  # One cell across the first row is the table's title.
            return
        self._has_rows = True
        readable.add_row(row, is_header=self._is_header)


class HtmlText:
    """Takes the events of `readers.html_reader`; `readable` holds the text."""

    def __init__(self, readable: ReadableText | None = None) -> None:
        self.readable = readable or ReadableText()
        self._inline: list[str] = []
        self._links: list[tuple[str, int]] = []
        self._heading = 0  # The level of the open heading.
        self._code_depth = 0
        self._tables: list[_Table | None] = []  # Open tables; None for layout tables.
        self._cell = (1, 1, False)  # Columns and rows of the open cell, whether it is a header.
        self._in_caption = False
        self.sections: list[tuple[int, int]] = []
        self._section_start = 0
        self._images: list[str] = []

    def add_events(self, events: Sequence[tuple[str, Any]]) -> None:
        """Add all events of a page at once: only the end of a table shows whether it has data."""
        data_tables = _data_tables(events)
        for index, (kind, value) in enumerate(events):
            if kind == "table":
                self._flush()
                self._tables.append(_Table() if index in data_tables else None)
            elif kind == "link":
                self._links.append((value, len(self._inline)))
            elif kind == "image":
                self._images.append(value)
            else:
                self._add(kind, value)
        self._flush()

    def _add(self, kind: str, value: Any) -> None:
        if kind == "text":
            self._inline.append(value if self._code_depth else _collapse(value))
        elif kind == "break":
            self._inline.append("\n")
        elif kind == "/link":
            self._close_link()
        elif kind in {"row", "/row", "cell", "/cell", "caption", "/caption", "/table"}:
            self._add_table(kind, value)
        elif kind in {"section", "/section"}:
            self._add_section(kind)
        elif self._in_cell:
            self._inline.append(_item_in_cell(value[1]) if kind == "item" else " ")
        elif kind in {"list", "/list", "item"}:
            self._add_list(kind, value)
        else:
            self._add_block(kind, value)

    @property
    def _in_cell(self) -> bool:
        return any(table is not None and table.in_row for table in self._tables[-1:])

    def _add_block(self, kind: str, value: Any) -> None:
        if kind == "block" and self._code_depth:
            return
        self._flush()
        if kind == "heading":
            self._heading = value
        elif kind == "/heading":
            self._heading = 0
        elif kind in {"code", "/code"}:
            self._code_depth += 1 if kind == "code" else -1

    def _add_section(self, kind: str) -> None:
        self._flush()
        length = self.readable.length
        if kind == "section":
            self._section_start = length
        else:
            # The empty line between two blocks is written with the second.
            start = self._section_start + (2 if 0 < self._section_start < length else 0)
            self.sections.append((start, length))

    def _add_list(self, kind: str, value: Any) -> None:
        self._flush()
        if kind == "list":
            self.readable.open_list(value)
        elif kind == "/list":
            self.readable.close_list()
        elif self.readable.in_list:  # An item outside of any list is a paragraph.
            is_note, label = value
            self.readable.open_item(label, is_note=is_note)

    def _add_table(self, kind: str, value: Any) -> None:
        table = self._tables[-1] if self._tables else None
        if table is not None and kind == "/cell":
            table.add_cell(_join_items(self._take_collected()), *self._cell)
            return
        self._flush()
        self._in_caption = kind == "caption"
        if kind == "/table":
            self._tables.pop()
            self.readable.close_table()
        elif table is None:
            return
        elif kind == "row":
            table.open_row()
        elif kind == "/row":
            table.close_row(self.readable)
        elif kind == "cell":
            self._cell = tuple(value)

    def _close_link(self) -> None:
        if self._links:
            address, first = self._links.pop()
            text = "".join(self._inline[first:])
            if text.strip():
                self._inline[first:] = [with_address(text, address)]

    def _take_collected(self) -> str:
        text = "".join(self._inline)
        self._inline.clear()
        self._links = [(address, 0) for address, _ in self._links]
        return text

    def _flush(self) -> None:
        """Write the collected text, and its images below it."""
        if self._inline:
            self._write(self._take_collected())
        if not self._in_cell:
            for key in self._images:
                self.readable.add_image(key)
            self._images.clear()

    def _write(self, text: str) -> None:
        if self._code_depth:
            self.readable.add_code(text)
        elif self._heading:
            self.readable.add_heading(self._heading, text)
        elif self._in_caption:
            self.readable.add_caption(text)
        else:
            text = _AROUND_BREAK.sub("\n", re.sub(" {2,}", " ", text)).strip()
            for part in [text] if self.readable.in_list else split_items(text):
                if is_item(part) and not self.readable.in_list:
                    self.readable.add_item(part)
                else:
                    self.readable.add_paragraph(part)


def _item_in_cell(label: str | None) -> str:
    """Return what separates an item in a cell from the one before, with a label that readers may
    ask for, such as "（三）" or "2.1", rather than a plain number."""
    shown = label if label and not _PLAIN_LABEL.fullmatch(label) else ""
    return f"{_ITEM_BORDER}{shown} "


def _join_items(text: str) -> str:
    """Return the text of a cell in one line: "Paper; ink"."""
    first, *items = map(one_line, text.split(_ITEM_BORDER))
    for item in filter(None, items):
        first += (" " if not first or first[-1] in _ENDS_ITEM else "; ") + item
    return first.strip()


def _collapse(text: str) -> str:
    return _SPACES.sub(" ", _WIDE_LINE_END.sub("", text))


def _data_tables(events: Iterable[tuple[str, Any]]) -> set[int]:
    """Return the indexes of the events that open tables with data. Other tables are layout, whose
    parts read better one below the other: their cells have tables, headings, or lists and code next
    to long text."""
    data: set[int] = set()
    opened: list[_TableShape] = []
    for index, (kind, value) in enumerate(events):
        if kind == "table":
            if opened:
                opened[-1].is_layout = True
            opened.append(_TableShape(index))
        elif kind == "/table":
            table = opened.pop()
            data |= {table.index} if table.is_data() else set()
        elif opened:
            opened[-1].add(kind, value)
    return data


class _TableShape:
    """The shape of a table, which shows whether it has data. `index` is that of its event."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_layout = False
        self._has_blocks = False
        self._is_header = False
        self._rows = self._row_cells = self._max_cells = 0
        self._cell_length = self._max_cell_length = 0

    def add(self, kind: str, value: Any) -> None:
        if kind == "text":
            self._cell_length += len(value)
            self._max_cell_length = max(self._max_cell_length, self._cell_length)
        elif kind == "row":
            self._rows, self._row_cells = self._rows + 1, 0
        elif kind == "cell":
            self._row_cells, self._cell_length, self._is_header = self._row_cells + 1, 0, value[2]
            self._max_cells = max(self._max_cells, self._row_cells)
        elif kind == "heading":
            self.is_layout = self.is_layout or not self._is_header
        elif kind in {"list", "code"}:
            self._has_blocks = True

    def is_data(self) -> bool:
        is_grid = self._rows > 1 and self._max_cells > 1
        return not self.is_layout and (
            not self._has_blocks or (is_grid and self._max_cell_length <= _MAX_CELL_LENGTH)
        )
