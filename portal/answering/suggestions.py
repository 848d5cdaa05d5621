"""Questions that a document itself suggests: those it asks, and those that its tables answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from portal.domain.documents import Heading
from portal.domain.documents.structure import Block
from portal.text.language import detect_language
from portal.text.layout.tables import table_rows

MAX_CHARACTERS = 80
_MAX_OF_A_DOCUMENT = 3
_MAX_ROWS = 3
# A question on a line of its own, as in lists of frequent questions.
_ASKED = re.compile(
    rf"^(?:(?:Q|问|question)\s*\d*\s*[:：.、]\s*|#+\s*|\d+[.、)]\s*)?([^\n?？|]{{5,{MAX_CHARACTERS}}}[?？])\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_UNIT = re.compile(r"\s*[(（][^()（）]*[)）]\s*")
# Rows whose name is a number, a date, a time or a sentence make odd questions.
_NUMBERED = re.compile(r"[-+]?[¥$€£￥]?\s?\d")
_MAX_ROW_WORDS = 3
# What is counted, such as days, in the plural.
_COUNTED = re.compile(r"(?!\w*(?:ss|us|is)\b)\w{2,}s\b", re.IGNORECASE)


def suggest(
    title: str, body: str, headings: Sequence[Heading], tables: Sequence[Block]
) -> list[str]:
    """Return questions that the text seems to answer, the best first. Whether it does is not
    checked."""
    asked = dict.fromkeys(match[1].strip() for match in _ASKED.finditer(body))
    of_tables = chain.from_iterable(_of_table(body, table) for table in tables)
    named = (_of_heading(title, heading) for heading in headings if heading.level > 1)
    mixed = chain.from_iterable(zip_longest(asked, of_tables))
    found = dict.fromkeys(one for one in chain(mixed, named) if one)
    return [one for one in found if len(one) <= MAX_CHARACTERS][:_MAX_OF_A_DOCUMENT]


def _of_table(body: str, table: Block) -> Iterator[str]:
    """Yield questions after cells: by row and column."""
    rows = [row.texts(body) for row in table_rows(body, table) if not row.is_header]
    header = [_UNIT.sub("", name).strip() for name in table.header]
    if len(header) < 2 or not all(header[:2]):  # noqa: PLR2004 - a name and a value
        return
    is_chinese = detect_language(" ".join(header)) == "zh"
    for number, cells in enumerate(rows[:_MAX_ROWS]):
        # Another column for each row, so that the questions differ.
        column = 1 + number % (len(header) - 1)
        if len(cells) != len(header) or not cells[0].strip() or not cells[column].strip():
            continue
        row, name = cells[0].strip(), header[column]
        if _NUMBERED.match(row) or len(row.split()) > _MAX_ROW_WORDS or not name:
            continue
        is_figure = bool(_NUMBERED.match(cells[column].strip()))
        yield _chinese(row, name, is_figure) if is_chinese else _english(row, name, is_figure)


def _chinese(row: str, name: str, is_figure: bool) -> str:
    asked = "多少" if is_figure else "谁" if name.endswith(("人", "员", "者")) else "什么"
    return f"{row}的{name}是{asked}？"


def _english(row: str, name: str, is_figure: bool) -> str:
    if is_figure and _COUNTED.match(name):
        return f"How many {_lowered(name)} for {_lowered(row)}?"
    return f"What is the {_lowered(name)} of {row}?"


def _of_heading(title: str, heading: Heading) -> str | None:
    name = heading.title.strip()
    if not name or name.endswith(("?", "？")):
        return None
    if detect_language(name) == "zh":
        return f"《{title}》对“{name}”有什么规定？"
    return f"What does “{title}” say about “{name}”?"


def _lowered(words: str) -> str:
    """Return words as they stand inside a sentence; abbreviations and names stay as they are."""
    first, _, rest = words.partition(" ")
    return f"{first.lower()} {rest}".strip() if first.istitle() else words
