"""The text of a chunk for display: paragraphs, headings, tables, lists and code as elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from portal.domain.documents import Chunk
from portal.domain.documents.structure import Block, BlockKind, LaidOutText
from portal.domain.search import Span
from portal.text.layout.sentences import trim
from portal.text.layout.tables import table_rows

_BULLET = re.compile(r"[-*+•·▪◦‣–]\s+(?=\S)")
_PARAGRAPH_BREAK = re.compile(r"\n(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Part of a chunk's text with its marks; `kind` is None for a paragraph.

    `is_first` is true for the piece with the chosen mark, and `first` is the index of that mark in
    `spans`. `level` is the level of a heading or item, `has_bullet` is true if a bullet was removed
    from an item, and `start` is where a heading begins in the chunk.
    """

    text: str
    spans: tuple[Span, ...] = ()
    is_first: bool = False
    level: int = 0
    kind: BlockKind | None = None
    start: int = 0
    first: int = 0
    has_bullet: bool = False


@dataclass(frozen=True, slots=True)
class TablePiece:
    """Rows of a table; the `header` may come from further up in the document."""

    header: tuple[TextPiece, ...]
    rows: tuple[tuple[TextPiece, ...], ...]


@dataclass(frozen=True, slots=True)
class ListPiece:
    """Consecutive items of a list: their text includes numbers but not bullets."""

    items: tuple[TextPiece, ...]


@dataclass(frozen=True, slots=True)
class ImagePiece:
    """The key of an image in the file, with its width and height if they are known."""

    image: str
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks of a chunk, in order, and the one that a link leads to."""

    spans: Sequence[Span]
    chosen: Span | None

    def piece(self, content: str, start: int, end: int, block: Block | None = None) -> TextPiece:
        is_first = self.chosen is not None and start <= self.chosen.start < end
        bullet = None
        if block and block.kind is BlockKind.ITEM:
            bullet = _BULLET.match(content, start, end)
            start = bullet.end() if bullet else start
        inside = [mark for mark in self.spans if max(mark.start, start) < min(mark.end, end)]
        return TextPiece(
            content[start:end],
            tuple(Span(max(m.start, start) - start, min(m.end, end) - start) for m in inside),
            is_first,
            level=block.level if block else 0,
            kind=block.kind if block else None,
            start=start if block and block.kind is BlockKind.HEADING else 0,
            first=inside.index(self.chosen) if is_first and self.chosen in inside else 0,
            has_bullet=bullet is not None,
        )


def chunk_pieces(
    chunk: Chunk | LaidOutText,
    spans: Iterable[Span],
    chosen: Span | None = None,
    *,
    image_sizes: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> Iterator[TextPiece | TablePiece | ListPiece | ImagePiece]:
    """Yield the pieces of a chunk, in order; `chosen` is the mark that a link leads to, by default
    the first."""
    ordered = sorted(spans, key=lambda span: span.start)
    marks = _Marks(ordered, chosen or (ordered[0] if ordered else None))
    items: list[TextPiece] = []
    for piece in _pieces(chunk.content, chunk.blocks, marks):
        if isinstance(piece, TextPiece) and piece.kind is BlockKind.ITEM:
            items.append(piece)
            continue
        if items:
            yield ListPiece(tuple(items))
            items = []
        if isinstance(piece, ImagePiece):
            yield ImagePiece(piece.image, image_sizes.get(piece.image))
        else:
            yield piece
    if items:
        yield ListPiece(tuple(items))


def _pieces(
    content: str, blocks: Iterable[Block], marks: _Marks
) -> Iterator[TextPiece | TablePiece | ImagePiece]:
    place = 0
    for block in sorted(blocks, key=lambda block: (block.start, block.kind is BlockKind.IMAGE)):
        if block.kind is BlockKind.IMAGE:
            if block.start > place:
                yield from _text(content, place, block.start, marks)
                place = block.start
            yield ImagePiece(block.key)
            continue
        if block.start < place:
            continue
        yield from _text(content, place, block.start, marks)
        if block.kind is BlockKind.TABLE:
            yield _table(content, block, marks)
        elif block.start < block.end:
            yield marks.piece(content, block.start, block.end, block)
        place = block.end
    yield from _text(content, place, len(content), marks)


def _text(content: str, start: int, end: int, marks: _Marks) -> Iterator[TextPiece]:
    breaks = [place.span() for place in _PARAGRAPH_BREAK.finditer(content, start, end)]
    starts = (start, *(after for _, after in breaks))
    ends = (*(before for before, _ in breaks), end)
    for paragraph in zip(starts, ends, strict=True):
        first, last = trim(content, *paragraph)
        if first < last:
            yield marks.piece(content, first, last)


def _table(content: str, table: Block, marks: _Marks) -> TablePiece:
    header = tuple(TextPiece(cell) for cell in table.header)
    rows = []
    for row in table_rows(content, table):
        cells = tuple(marks.piece(content, start, end) for start, end in row.cells)
        if row.is_header:
            header = cells
        else:
            rows.append(cells)
    columns = max(map(len, (header, *rows)))
    empty = TextPiece("")
    padded = (row + (empty,) * (columns - len(row)) for row in rows)
    return TablePiece(header and header + (empty,) * (columns - len(header)), tuple(padded))
