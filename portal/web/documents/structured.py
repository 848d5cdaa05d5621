"""The text of a chunk for display: paragraphs as they are, headings and tables as elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from portal.domain.documents import Chunk
from portal.domain.search import Span
from portal.domain.structure import Block, BlockKind
from portal.text.sentences import trim
from portal.text.tables import table_rows


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Characters of a chunk with the marks in them.

    `is_first` for the piece with the first mark. `level` is that of a heading.
    """

    text: str
    spans: tuple[Span, ...] = ()
    is_first: bool = False
    level: int = 0


@dataclass(frozen=True, slots=True)
class TablePiece:
    """Rows of a table; its `header` may be further up in the document."""

    header: tuple[TextPiece, ...]
    rows: tuple[tuple[TextPiece, ...], ...]


def chunk_pieces(chunk: Chunk, spans: Iterable[Span]) -> Iterator[TextPiece | TablePiece]:
    """Yield the pieces of a chunk, in order."""
    content, marks = chunk.content, sorted(spans, key=lambda span: span.start)
    place = 0
    for block in chunk.blocks:
        if block.kind not in {BlockKind.TABLE, BlockKind.HEADING} or block.start < place:
            continue
        yield from _text(content, place, block.start, marks)
        if block.kind is BlockKind.TABLE:
            yield _table(content, block, marks)
        else:
            piece = _piece(content, block.start, block.end, marks)
            yield replace(piece, level=block.level)
        place = block.end
    yield from _text(content, place, len(content), marks)


def _text(content: str, start: int, end: int, marks: Sequence[Span]) -> Iterator[TextPiece]:
    first, last = trim(content, start, end)
    if first < last:
        yield _piece(content, first, last, marks)


def _piece(content: str, start: int, end: int, marks: Sequence[Span]) -> TextPiece:
    within = tuple(
        Span(max(mark.start, start) - start, min(mark.end, end) - start)
        for mark in marks
        if max(mark.start, start) < min(mark.end, end)
    )
    return TextPiece(content[start:end], within, bool(marks) and start <= marks[0].start < end)


def _table(content: str, table: Block, marks: Sequence[Span]) -> TablePiece:
    header = tuple(TextPiece(cell) for cell in table.header)
    rows = []
    for row in table_rows(content, table):
        cells = tuple(_piece(content, start, end, marks) for start, end in row.cells)
        if row.is_header:
            header = cells
        else:
            rows.append(cells)
    columns = max(map(len, (header, *rows)))
    empty = TextPiece("")
    padded = (row + (empty,) * (columns - len(row)) for row in rows)
    return TablePiece(header and header + (empty,) * (columns - len(header)), tuple(padded))
