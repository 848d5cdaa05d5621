"""Writes headings, paragraphs, lists, tables and code as plain, readable text."""

from __future__ import annotations

import re

from portal.domain.documents import Heading

_MAX_ADDRESS_LENGTH = 200  # Longer ones are data, not addresses that someone reads.
_DEEPEST_INDENT = 20  # Deeper lists are no deeper to the eye.
_SPACES = re.compile(r"\s+")


class ReadableText:
    """Collects blocks of text, an empty line between them, and where headings begin."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self._parts: list[str] = []
        self._length = 0
        self._lists: list[int | None] = []  # Open lists: the next number, None for bullets.
        self._marker = ""
        self._cells: list[str] | None = None
        self._tight = False

    def text(self) -> str:
        return "".join(self._parts)

    @property
    def in_list(self) -> bool:
        return bool(self._lists)

    def add_block(self, block: str) -> None:
        """Add a paragraph, or the like; items of a list and rows of a table keep together."""
        if not block.strip():
            return
        if self._parts:
            self._write("\n" if self._tight else "\n\n")
        self._write(block)
        self._tight = False

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def add_heading(self, level: int, text: str) -> None:
        title = one_line(text)
        self.add_block(title)
        if title:
            self.headings.append(Heading(level, title, self._length - len(title)))

    def add_paragraph(self, text: str) -> None:
        """Add a paragraph, or a part of the item that is open."""
        if not self._lists:
            self.add_block(text)
            return
        indent = "  " * (min(len(self._lists), _DEEPEST_INDENT) - 1)
        hanging = indent + (" " * len(self._marker) if self._marker else "  ")
        # The first paragraph of an item stands beside its marker, the rest below it.
        if text.strip():
            self.add_block(indent + (self._marker or "  ") + text.replace("\n", "\n" + hanging))
            self._marker = ""
            self._tight = True

    def open_list(self, first: int | None) -> None:
        """Begin a list that is numbered from `first`, or has bullets."""
        self._lists.append(first)
        self._marker = ""

    def close_list(self) -> None:
        self._lists.pop()
        self._tight = bool(self._lists)

    def open_item(self) -> None:
        number = self._lists[-1]
        self._marker = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    @property
    def in_row(self) -> bool:
        return self._cells is not None

    def open_row(self) -> None:
        self._cells = []

    def add_cell(self, text: str) -> None:
        if self._cells is not None:
            self._cells.append(one_line(text))

    def close_row(self) -> None:
        cells, self._cells = self._cells or [], None
        self.add_block(" | ".join(cells))
        self._tight = True

    def close_table(self) -> None:
        self._tight = False

    def add_code(self, code: str) -> None:
        """Add code as it was written."""
        self.add_block(code.rstrip("\n"))


def one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def with_address(link_text: str, address: str) -> str:
    """The text of a link, and its address where people would miss it: "where do I find …"."""
    shown = address.startswith(("http://", "https://", "mailto:"))
    shown = shown and len(address) <= _MAX_ADDRESS_LENGTH
    if shown and address.removeprefix("mailto:") not in link_text:
        return f"{link_text} ({address})"
    return link_text
