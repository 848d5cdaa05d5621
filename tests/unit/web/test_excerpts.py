"""Excerpts of results: table rows are shown as tables, and all marks are kept."""

from __future__ import annotations

import pytest

from portal.domain.search import Span
from portal.web.search.excerpts import ExcerptBlock, excerpt_blocks, headings_above


def _blocks(
    excerpt: str, *marked: str, context: str | None = None, has_header: bool = False
) -> list[ExcerptBlock]:
    spans = tuple(Span(excerpt.index(m), excerpt.index(m) + len(m)) for m in marked)
    return excerpt_blocks(excerpt, spans, context, has_header=has_header)


def _rows(block: ExcerptBlock) -> list[list[str]]:
    return [[cell.text for cell in row] for row in block.rows]


def _header(block: ExcerptBlock) -> list[str]:
    return [cell.text for cell in block.header]


def test_lines_with_bars_are_rows_between_paragraphs() -> None:
    before, table, after = _blocks(
        "Allowances\n\nMeal | 30 | daily\nTravel | 200 | monthly\n\nSee below.", "200", "below"
    )
    assert before.paragraph is not None
    assert before.paragraph.text == "Allowances"
    assert _rows(table) == [["Meal", "30", "daily"], ["Travel", "200", "monthly"]]
    assert table.rows[1][1].spans == (Span(0, 3),)
    assert after.paragraph is not None
    assert after.paragraph.spans == (Span(4, 9),)


def test_known_header_is_shown_above_the_rows() -> None:
    (table,) = _blocks("Meal | 30", context="Allowances of 2026\nWhat | How much")
    assert (_header(table), table.caption) == (["What", "How much"], "Allowances of 2026")


def test_header_that_the_excerpt_begins_with_is_not_a_row() -> None:
    text = "What | How much\nMeal | 30"
    for context, has_header in (("Allowances\nWhat | How much", False), (None, True)):
        (table,) = _blocks(text, "much", context=context, has_header=has_header)
        assert (_header(table), _rows(table)) == (["What", "How much"], [["Meal", "30"]])
        assert table.header[1].spans == (Span(4, 8),)
    # A row from the middle of a table without a header is not a header.
    (table,) = _blocks("Owner | Mary\nStatus | draft")
    assert (table.header, len(table.rows)) == ((), 2)
    _, table = _blocks("See below.\n" + text)
    assert (_header(table), _rows(table)) == (["What", "How much"], [["Meal", "30"]])
    _, wide, narrow = _blocks("See below.\nA | B | C\n1 | 2 | 3\n\nOwner | Mary\nStatus | draft")
    assert (_header(wide), narrow.header) == (["A", "B", "C"], ())


def test_rows_without_their_last_cells_stay_below_the_header() -> None:
    header = "Order | Total | Remark"
    (table,) = _blocks("7 | 30\n8 | 40 | late", context=f"Orders\n{header}")
    assert (_header(table), table.caption) == (header.split(" | "), "Orders")
    assert _rows(table) == [["7", "30", ""], ["8", "40", "late"]]


@pytest.mark.parametrize("text", ["Run a | b to join them", " | ", "x |", "| y", "a |  | c"])
def test_single_line_with_bars_is_prose_and_keeps_its_words(text: str) -> None:
    (block,) = _blocks(text)
    assert block.paragraph is not None
    assert block.paragraph.text.replace(" ", "") == text.replace(" ", "")


def test_single_row_of_a_quotation_is_a_row() -> None:
    (row,) = excerpt_blocks("over 5 | 30 | 5 days", is_quote=True)
    assert _rows(row) == [["over 5", "30", "5 days"]]


def test_lines_with_bullets_are_a_list_without_them() -> None:
    before, items, after = _blocks(
        "Allowances:\n- Meal: 30\n• Travel: 200\n\nPaid monthly - late.", "200", "late"
    )
    assert before.paragraph is not None
    assert [one.text for one in items.items] == ["Meal: 30", "Travel: 200"]
    assert items.items[1].spans == (Span(8, 11),)
    assert after.paragraph is not None
    assert after.paragraph.text == "Paid monthly - late."


@pytest.mark.parametrize(
    ("heading", "excerpt", "shown"),
    [
        ("Guide › Install › Linux", "Run the script.", "Guide › Install › Linux"),
        ("Guide › Install › Linux", "Linux\n\nRun the script.", "Guide › Install"),
        ("第七章 离职", "第七章  离职\n第三十三条", ""),
        ("handbook › Leave", "27 days.", "Leave"),
        ("handbook", "27 days.", ""),
        (None, "27 days.", ""),
    ],
)
def test_headings_above_an_excerpt_repeat_neither_the_title_nor_its_first_line(
    heading: str | None, excerpt: str, shown: str
) -> None:
    assert headings_above(heading, "handbook", excerpt) == shown
