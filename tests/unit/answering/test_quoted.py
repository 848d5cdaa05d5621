"""Tables in the Markdown of an answer."""

from __future__ import annotations

from portal.answering.quoted import quoted_lines, quoted_tables

ANSWER = """Quoted from your documents:

> | | Owner |
> | --- | --- |
> | **Laptop** | Tom Reed |
> | Badge | |
>
> [1]

> Ann Lee keeps the keys. [2]

> | City |
> | --- |
> | Rome |
"""


def test_quoted_lines_have_no_markers():
    lines = quoted_lines(ANSWER)
    assert "Ann Lee keeps the keys." in lines
    assert not [line for line in lines if line.startswith((">", "Quoted")) or "[" in line]


def test_quoted_tables_keep_their_cells_in_place():
    (first, second) = quoted_tables(quoted_lines(ANSWER))
    assert first.header == ["", "Owner"]
    assert first.rows == [["Laptop", "Tom Reed"], ["Badge", ""]]
    assert second == (["City"], [["Rome"]])
