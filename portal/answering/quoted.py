"""The lines that an answer quotes, and the tables among them, read from its Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_MARKER = re.compile(r"\s*\[\d{1,3}\]")
_RULE = re.compile(r"[\s|:-]+")


class QuotedTable(NamedTuple):
    """The cells of a header, and of the rows below it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def quoted_lines(answer: str) -> list[str]:
    """Return the lines of the quotations without their markers."""
    lines = (line.lstrip("> ") for line in answer.splitlines() if line.startswith(">"))
    return [_MARKER.sub("", line) for line in lines]


def quoted_tables(lines: Sequence[str]) -> list[QuotedTable]:
    """Return the tables among lines of Markdown."""
    tables: list[QuotedTable] = []
    rows: list[Sequence[str]] | None = None
    for line in lines:
        if not line.startswith("|"):
            rows = None
            continue
        # Not strip("|"): the first or the last cell may be empty.
        row = line.strip().removeprefix("|").removesuffix("|")
        cells = [cell.strip(" *") for cell in row.split("|")]
        if rows is None:
            rows = []
            tables.append(QuotedTable(cells, rows))
        elif not _RULE.fullmatch(line):
            rows.append(cells)
    return tables
