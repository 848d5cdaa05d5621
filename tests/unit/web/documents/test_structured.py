from __future__ import annotations

from portal.domain.documents import Chunk
from portal.domain.documents.structure import Block, BlockKind, LaidOutText
from portal.domain.search import Span
from portal.web.documents.reading.structured import ListPiece, TablePiece, TextPiece, chunk_pieces

CONTENT = "Leave\n\nBefore.\n\n1–5 | 10 | \n>5 | 15 | yes\n\nAfter."


def chunk() -> Chunk:
    start, end = CONTENT.index("1–5"), CONTENT.index("\n\nAfter")
    return Chunk(
        index=0,
        content=CONTENT,
        char_start=100,
        char_end=100 + len(CONTENT),
        blocks=(
            Block(BlockKind.HEADING, 0, 5, level=2),
            Block(BlockKind.TABLE, start, end, body=start, header=("Years", "Days", "More")),
        ),
    )


def test_tables_have_their_header_even_from_an_earlier_chunk() -> None:
    heading, before, table, after = chunk_pieces(chunk(), ())
    assert heading == TextPiece("Leave", level=2, kind=BlockKind.HEADING)
    assert (before, after) == (TextPiece("Before."), TextPiece("After."))
    assert isinstance(table, TablePiece)
    assert [cell.text for cell in table.header] == ["Years", "Days", "More"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1–5", "10", ""],
        [">5", "15", "yes"],
    ]


def test_marks_are_cut_at_cells_and_only_one_is_the_first() -> None:
    start = CONTENT.index("10")
    pieces = list(chunk_pieces(chunk(), [Span(start, CONTENT.index("15") + 2)]))
    marked = [
        (piece.text[span.start : span.end], piece.is_first)
        for table in pieces
        if isinstance(table, TablePiece)
        for row in table.rows
        for piece in row
        for span in piece.spans
    ]
    assert marked == [("10", True), (">5", False), ("15", False)]


def test_items_in_a_row_are_one_list_and_code_keeps_its_lines() -> None:
    content = "1. one\n  - two\n\nx = 1\n  y = 2"
    blocks = (
        Block(BlockKind.ITEM, 0, 6, level=1),
        Block(BlockKind.ITEM, 9, 14, level=2),
        Block(BlockKind.CODE, 16, len(content)),
    )
    found = Chunk(index=0, content=content, char_start=0, char_end=len(content), blocks=blocks)
    listed, code = chunk_pieces(found, [Span(9, 12)])
    assert isinstance(listed, ListPiece)
    numbered, bulleted = listed.items
    assert (numbered.text, numbered.level, numbered.has_bullet) == ("1. one", 1, False)
    assert (bulleted.text, bulleted.level, bulleted.has_bullet) == ("two", 2, True)
    assert (bulleted.spans, bulleted.is_first) == ((Span(0, 1),), True)
    assert (code.text, code.kind) == ("x = 1\n  y = 2", BlockKind.CODE)


def test_chosen_mark_is_the_target_of_links() -> None:
    spans = [Span(0, 1), Span(2, 3), Span(4, 5)]
    (piece,) = chunk_pieces(
        Chunk(index=0, content="a a a", char_start=0, char_end=5), spans, spans[1]
    )
    assert (piece.is_first, piece.first) == (True, 1)


def test_blank_lines_split_paragraphs_and_a_mark_across_them() -> None:
    content = "One line\nof two. Cited.\n \n\nMore of it.\n\nLast."
    spans = [Span(content.index("Cited"), content.index(" of it"))]
    pieces = list(chunk_pieces(LaidOutText(content), spans))
    shown = [
        (piece.text, [piece.text[mark.start : mark.end] for mark in piece.spans], piece.is_first)
        for piece in pieces
        if isinstance(piece, TextPiece)
    ]
    assert shown == [
        ("One line\nof two. Cited.", ["Cited."], True),
        ("More of it.", ["More"], False),
        ("Last.", [], False),
    ]
