"""Rows of a table within a text."""

from __future__ import annotations

import pytest

from portal.text.layout.tables import begins_with_header, header_above

ROWS = "Item | Price\nBolt | 10\nNut | 20"


@pytest.mark.parametrize(
    ("text", "row", "above", "header"),
    [
        (ROWS, "Nut", None, "Item | Price"),
        (f"Prices\n\n{ROWS}", "Bolt", None, "Item | Price"),
        # The row is the header, is not a row, or its table has no header.
        (ROWS, "Item", None, None),
        (f"{ROWS}\n\nAll in euros.", "All", None, None),
        ("1 | 10\n2 | 20", "2 |", None, None),
        # The table begins in the previous chunk.
        ("Bolt | 10\nNut | 20", "Bolt", "Item | Price", "Item | Price"),
        ("Bolt | 10\nNut | 20", "Nut", "Item | Price", "Item | Price"),
        (f"Washer | 5\n\n{ROWS}", "Nut", "Part | Cost", "Item | Price"),
    ],
)
def test_header_of_a_row_is_above_it(
    text: str, row: str, above: str | None, header: str | None
) -> None:
    assert header_above(text, text.index(row), above) == header


@pytest.mark.parametrize(
    ("text", "row", "above", "begins"),
    [
        (ROWS, "Item", None, True),
        (f"Prices\n\n{ROWS}", "Item", "Part | Cost", True),
        (ROWS, "Bolt", None, False),
        # A table without a header, and rows of a table that begins in the previous chunk.
        ("Until | 2026\nOwner | Mary\nStatus | draft", "Owner", None, False),
        ("Owner | Mary\nStatus | draft", "Owner", "Field | Value", False),
    ],
)
def test_header_at_the_beginning_of_a_text_is_recognised(
    text: str, row: str, above: str | None, begins: bool
) -> None:
    assert begins_with_header(text, text.index(row), above) is begins
