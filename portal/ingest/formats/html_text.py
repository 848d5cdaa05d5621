"""Writes what a web page shows as plain, readable text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from portal.ingest.formats.readable_text import ReadableText, with_address
from portal.text.scripts import HAN, HIRAGANA, KATAKANA

_WIDE = f"[{HAN}{HIRAGANA}{KATAKANA}\u3000-\u303f\uff00-\uffef]"
# Chinese has no spaces; where its source has line ends, browsers show some.
_WIDE_LINE_END = re.compile(f"(?<={_WIDE})[ \t\f]*\n[ \t\f\n]*(?={_WIDE})")
_SPACES = re.compile(r"[ \t\n\f\r]+")
_AROUND_BREAK = re.compile(r" *\n *")
_BLOCKS_IN_CELLS = frozenset({"heading", "list", "code", "table"})


class HtmlText:
    """Takes the events of `readers.html_reader`; `readable` holds what came of them."""

    def __init__(self) -> None:
        self.readable = ReadableText()
        self._inline: list[str] = []
        self._links: list[tuple[str, int]] = []
        self._heading = 0  # The level of the one that is open.
        self._code_depth = 0
        self._tables: list[bool] = []  # Open ones: whether each holds data rather than layout.

    def add_events(self, events: Sequence[tuple[str, Any]]) -> None:
        """Add all events of a page: what a table is for shows only at its end."""
        data_tables = _data_tables(events)
        for index, (kind, value) in enumerate(events):
            if kind == "table":
                self._flush()
                self._tables.append(index in data_tables)
            elif kind == "link":
                self._links.append((value, len(self._inline)))
            else:
                self._add(kind, value)
        self._flush()

    def _add(self, kind: str, value: Any) -> None:
        if kind == "text":
            self._inline.append(value if self._code_depth else _collapsed(value))
        elif kind == "break":
            self._inline.append("\n")
        elif kind == "/link":
            self._close_link()
        elif kind in {"row", "/row", "cell", "/cell", "/table"}:
            self._add_table(kind)
        elif kind in {"list", "/list", "item"}:
            self._add_list(kind, value)
        elif not self._in_cell:
            self._add_block(kind, value)
        else:
            self._inline.append(" ")

    @property
    def _in_cell(self) -> bool:
        return self.readable.in_row

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

    def _add_list(self, kind: str, value: Any) -> None:
        self._flush()
        if kind == "list":
            self.readable.open_list(value)
        elif kind == "/list":
            self.readable.close_list()
        elif self.readable.in_list:  # An item outside of any list is a paragraph.
            self.readable.open_item()

    def _add_table(self, kind: str) -> None:
        is_data = bool(self._tables) and self._tables[-1]
        if kind == "/cell" and is_data:
            self.readable.add_cell(self._taken())
            return
        self._flush()
        if kind == "row" and is_data:
            self.readable.open_row()
        elif kind == "/row" and is_data:
            self.readable.close_row()
        elif kind == "/table":
            self._tables.pop()
            self.readable.close_table()

    def _close_link(self) -> None:
        if self._links:
            address, first = self._links.pop()
            text = "".join(self._inline[first:])
            if text.strip():
                self._inline[first:] = [with_address(text, address)]

    def _taken(self) -> str:
        text = "".join(self._inline)
        self._inline.clear()
        self._links = [(address, 0) for address, _ in self._links]
        return text

    def _flush(self) -> None:
        if not self._inline:
            return
        text = self._taken()
        if self._code_depth:
            self.readable.add_code(text)
        elif self._heading:
            self.readable.add_heading(self._heading, text)
        else:
            text = _AROUND_BREAK.sub("\n", _repeated_spaces(text)).strip()
            self.readable.add_paragraph(text)


def _collapsed(text: str) -> str:
    return _SPACES.sub(" ", _WIDE_LINE_END.sub("", text))


def _repeated_spaces(text: str) -> str:
    return re.sub(r" {2,}", " ", text)


def _data_tables(events: Iterable[tuple[str, Any]]) -> set[int]:
    """Where tables begin whose cells hold no headings, lists, code or tables: others place parts
    of a page beside each other, and those read better one below the other."""
    data: set[int] = set()
    opened: list[tuple[int, bool]] = []
    for index, (kind, _) in enumerate(events):
        if kind in _BLOCKS_IN_CELLS and opened:
            opened[-1] = (opened[-1][0], False)
        if kind == "table":
            opened.append((index, True))
        elif kind == "/table":
            start, is_data = opened.pop()
            data |= {start} if is_data else set()
    return data
