"""Plain text written from headings, paragraphs, lists, tables and code, with their ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from portal.domain.documents import ExtractedText, Heading
from portal.domain.documents.structure import Block, BlockKind
from portal.errors import EmptyFile
from portal.ingest.limits import FileToRead
from portal.text.layout.tables import BORDER, CELL_BORDER, header_count, join_header

_MAX_ADDRESS_LENGTH = 200  # Longer ones are data, not addresses for reading.
_DEEPEST_INDENT = 20  # Deeper lists are indented no further.
TERMS = -1
_SPACES = re.compile(r"\s+")
_MAX_TITLE_LENGTH = 300  # Longer headings are paragraphs in large type.
_AROUND_CODE = re.compile(r"\A(?:[ \t]*\n)+|\s+\Z")
MAX_CAPTION_LENGTH = 200
MAX_IMAGES = 2_000  # of a document
_CAPTION = re.compile(r"(?:表|附表|Table|Tab\.)\s*[\d一二三四五六七八九十A-Z]", re.IGNORECASE)
# Bullets, numbers and letters that are written by hand: "● ", "2) ", "（三）".
_MARKER = re.compile(
    r"(?:[•▪●○◆■□►✓]\s*|[-–·*]\s+|[-–](?=[A-Z])|\(?(?:\d{1,2}|[a-z])[.)、]\s+"
    r"|[（(][一二三四五六七八九十\d]{1,3}[）)]\s*)(?=\S)"
)
_ITEM_LINE = re.compile(rf"\n(?={_MARKER.pattern})")


class _OpenTable:
    """A table being written. Only the header and two rows below are kept in `rows`."""

    def __init__(self, caption: str) -> None:
        self.caption = caption
        self.rows: list[list[str]] = []
        self.starts: list[int] = []  # For the same rows as `rows`.
        self.row_count = 0
        self.bars: list[int] = []
        self.header_count = 0
        self.end = 0


class ReadableText:
    """Collects blocks of text, separated by empty lines, and the positions of headings."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.blocks: list[Block] = []
        self._images: list[Block] = []
        self._images_of_table: list[str] = []
        self._parts: list[str] = []
        self.length = 0
        # Open lists: the next number, None for bullets, TERMS for terms with their definitions.
        self._lists: list[int | None] = []
        self._marker: str | None = None  # Of the item that is about to begin.
        self._item_kind = BlockKind.ITEM
        self._table: _OpenTable | None = None
        self._cells: list[str] | None = None
        self._is_header_row = False
        self._tight = False

    def text(self) -> str:
        return "".join(self._parts)

    def extracted(self, file: FileToRead, extractor: str) -> ExtractedText:
        """Return the text with its structure. Raises EmptyFile."""
        if not self.text().strip():
            raise EmptyFile(name=file.name)
        headings = tuple(self.headings)
        return ExtractedText(self.text(), extractor, headings=headings, blocks=self.all_blocks)

    @property
    def all_blocks(self) -> tuple[Block, ...]:
        """Return the blocks with text, then the images."""
        return (*self.blocks, *self._images)

    @property
    def has_words(self) -> bool:
        """Return whether there is anything but headings."""
        return self.length > sum(len(heading.title) + 2 for heading in self.headings)

    @property
    def in_list(self) -> bool:
        return bool(self._lists)

    def add_block(self, block: str, kind: BlockKind | None = None, *, level: int = 0) -> None:
        """Add a paragraph or another block; items of a list and rows of a table stay together."""
        if not block.strip():
            return
        if self._parts:
            self._write("\n" if self._tight else "\n\n")
        self._write(block)
        self._tight = False
        if kind is not None:
            indent = len(block) - len(block.lstrip(" "))
            start = self.length - len(block) + indent
            self.blocks.append(Block(kind, start, self.length, level))

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)

    def add_heading(self, level: int, text: str) -> None:
        title = one_line(text)
        self.add_block(title)
        if title and len(title) <= _MAX_TITLE_LENGTH:
            self.headings.append(Heading(level, title, self.length - len(title)))

    def add_image(self, key: str) -> None:
        """Add an image below the text so far; images in a table are added below the table."""
        if self._table is not None:
            self._images_of_table.append(key)
        elif len(self._images) < MAX_IMAGES:
            self._images.append(Block(BlockKind.IMAGE, self.length, self.length, key=key))

    def add_caption(self, text: str) -> None:
        self.add_block(one_line(text), BlockKind.CAPTION)

    def add_paragraph(self, text: str) -> None:
        """Add a paragraph, or a part of the open item."""
        if not self._lists:
            self.add_block(text)
            return
        if not text.strip():
            return
        indent = "  " * (min(len(self._lists), _DEEPEST_INDENT) - 1)
        hanging = indent + " " * len(self._marker or "  ")
        # The first paragraph of an item follows its marker, the rest is below it.
        marker = "  " if self._marker is None else self._marker
        block = indent + marker + text.replace("\n", "\n" + hanging)
        if self._marker is not None:
            self.add_block(block, self._item_kind, level=len(self._lists))
        else:
            previous_end = self.length
            self.add_block(block)
            self._extend_item(previous_end)
        self._marker = None
        self._tight = True

    def add_item(self, text: str) -> None:
        """Add an item that has its own marker; bullets are written as in other lists. Items that
        follow each other form a list."""
        above = self.blocks[-1] if self.blocks else None
        self._tight = bool(above and above.kind is BlockKind.ITEM and above.end == self.length)
        marker = _MARKER.match(text)
        end = marker.end() if marker else 0
        sign = text[:end].rstrip()
        sign = sign if any(map(str.isalnum, sign)) else "-"
        self.add_block(f"{sign} {text[end:]}", BlockKind.ITEM, level=1)

    def _extend_item(self, previous_end: int) -> None:
        """Extend the item that ends at `previous_end` to the end of the text."""
        item = self.blocks[-1] if self.blocks else None
        if item and item.end == previous_end and item.level == len(self._lists):
            self.blocks[-1] = replace(item, end=self.length)

    def open_list(self, first: int | None) -> None:
        """Open a list that is numbered from `first`, or has bullets or TERMS."""
        self._lists.append(first)
        self._marker = None

    def close_list(self) -> None:
        self._lists.pop()
        self._tight = bool(self._lists)

    def open_item(self, label: str | None = None, *, is_note: bool = False) -> None:
        """Open an item with this label, by default the next number or the bullet of its list."""
        number = self._lists[-1]
        if label is not None:
            self._marker = f"{label} " if label else ""
        else:
            self._marker = "- " if number is None else "" if number == TERMS else f"{number}. "
        self._item_kind = BlockKind.FOOTNOTE if is_note else BlockKind.ITEM
        if number is not None and number != TERMS:
            self._lists[-1] = number + 1

    @property
    def in_row(self) -> bool:
        return self._cells is not None

    def open_table(self, caption: str = "") -> None:
        # Each chunk of the table has the caption and the header as its context.
        self._table = _OpenTable((caption or self._caption_above())[:MAX_CAPTION_LENGTH])

    def _caption_above(self) -> str:
        """Return the last block if it is a table's caption: "Table 3: …", or marked as one."""
        last = self._parts[-1].strip() if self._parts else ""
        block = self.blocks[-1] if self.blocks else None
        if block and block.end == self.length:
            return last[:MAX_CAPTION_LENGTH] if block.kind is BlockKind.CAPTION else ""
        if not is_caption(last) or (
            self.headings and self.headings[-1].start == self.length - len(last)
        ):
            return ""
        self.blocks.append(Block(BlockKind.CAPTION, self.length - len(last), self.length))
        return last

    def add_row(self, cells: Iterable[str], *, is_header: bool = False) -> None:
        """Add a whole row to the table, which is opened if there is none."""
        self.open_row(is_header=is_header)
        for cell in cells:
            self.add_cell(cell)
        self.close_row()

    def open_row(self, *, is_header: bool = False) -> None:
        if self._table is None:
            self.open_table()
        self._cells, self._is_header_row = [], is_header

    def add_cell(self, text: str) -> None:
        if self._cells is not None:
            self._cells.append(one_line(text))

    def close_row(self) -> None:
        cells, self._cells = self._cells or [], None
        table, line = self._table, CELL_BORDER.join(cells)
        if table is None or not any(cells):
            return
        self.add_block(line)
        self._tight = True
        start = self.length - len(line)
        is_whole = not table.rows or len(cells) == len(table.rows[0])
        if self._is_header_row and is_whole and table.header_count == table.row_count:
            table.header_count += 1
        table.row_count += 1
        table.end = self.length
        if len(table.rows) <= table.header_count + 2:
            table.rows.append(cells)
            table.starts.append(start)
        for cell in cells:
            table.bars += (start + bar.start() for bar in BORDER.finditer(cell))
            start += len(cell) + len(CELL_BORDER)

    def close_table(self) -> None:
        table, self._table = self._table, None
        self._tight = False
        for key in self._images_of_table:
            self.add_image(key)
        self._images_of_table.clear()
        if table is None or not table.starts:
            return
        count = max(table.header_count, header_count(table.rows))
        if count == table.row_count:
            count = 0  # A header alone is not a table.
        header = join_header(table.rows[:count])
        if table.row_count == 1 and len(table.rows[0]) == 1:
            return
        self.blocks.append(
            Block(
                BlockKind.TABLE,
                table.starts[0],
                table.end,
                body=table.starts[count],
                header=tuple(header),
                caption=table.caption,
                bars=tuple(table.bars),
            )
        )

    def add_code(self, code: str) -> None:
        """Add code as it was written."""
        self.add_block(_AROUND_CODE.sub("", code), BlockKind.CODE)


def is_item(text: str) -> bool:
    """Return whether a paragraph begins with a marker of a list: "● …", "2) …", "（三）…"."""
    return bool(_MARKER.match(text))


def split_items(text: str) -> list[str]:
    """Return a paragraph cut before each of its lines that begins with a marker of a list."""
    return _ITEM_LINE.split(text)


def is_caption(text: str) -> bool:
    """Return whether a paragraph reads as the caption of a table: "Table 3: …"."""
    return len(text) <= MAX_CAPTION_LENGTH and "\n" not in text and bool(_CAPTION.match(text))


def one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def with_address(link_text: str, address: str) -> str:
    """Return the text of a link, with its address if that may be asked for: "where do I find …"."""
    shown = address.startswith(("http://", "https://", "mailto:"))
    shown = shown and len(address) <= _MAX_ADDRESS_LENGTH
    if shown and address.removeprefix("mailto:") not in link_text:
        return f"{link_text} ({address})"
    return link_text.removeprefix("mailto:")
