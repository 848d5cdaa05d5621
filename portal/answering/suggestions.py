"""Questions that a document itself suggests: those it asks, and those that its tables, glossary and
sections answer."""

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
# A question on its own line, as in lists of frequent questions.
_ASKED = re.compile(
    rf"^(?:(?:Q|问|question)\s*\d*\s*[:：.、]\s*|#+\s*|\d+[.、)]\s*)?([^\n?？|]{{5,{MAX_CHARACTERS}}}[?？])\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_UNIT = re.compile(r"\s*[(（][^()（）]*[)）]\s*")
# Rows whose name has a number, a date or a time in it, or is a sentence, make odd questions.
_NUMBERED = re.compile(r"[-+]?[¥$€£￥]?\s?\d")
_DIGIT = re.compile(r"\d")
_MAX_ROW_WORDS = 3
# Terms of a glossary, each on a line: "Chunk: a part of a text", "分块：指……".
_DEFINED = re.compile(
    r"^[ \t*•-]*([^\W\d_][^:：*\n。，,;；]{1,40})\**[:：]\**\s*(?:(?:an?|the)\s|是?指|即)",
    re.MULTILINE | re.IGNORECASE,
)
_MIN_TERMS = 3
# "3.2 Leave", "Requirement 4: Leave", "第三章 年假" and "一、年假" are about leave.
_COUNTED_HEADING = re.compile(
    r"^(?:[^\W\d]{3,12}\s+)?\d[\d.]*\s*[.、):：]?\s*|^第[\d一二三四五六七八九十百]+[章节条部]分?[\s：:]*"
    r"|^[（(]?[一二三四五六七八九十]+[）)、.]\s*|^(?:requirement|scenario):\s*",
    re.IGNORECASE,
)
# Headings that any document may have say nothing about this one.
_GENERAL = re.compile(
    "abstract|appendix|background|conclusion|contents|description|general|glossary|index"
    "|introduction|notes|overview|preface|principles|purpose|references|requirements|scope|summary"
    "|术语表?|目录|目的|说明|简介|概述|背景|(适用)?范围|[前引]言|摘要|结论|总则|附则|附录|要求|参考文献",
    re.IGNORECASE,
)
# Columns of people, in English; in Chinese their names end in 人, 员 or 者.
_PERSON = re.compile(
    r"(?:contact |responsible )?person|contact|owner|lead|manager|approver|reviewer|author|assignee"
    r"|instructor|teacher|speaker|chair",
    re.IGNORECASE,
)
# What is counted, such as days, in the plural.
_COUNTED = re.compile(r"(?!\w*(?:ss|us|is)\b)\w{2,}s\b", re.IGNORECASE)


def suggest(
    title: str, body: str, headings: Sequence[Heading], tables: Sequence[Block]
) -> list[str]:
    """Return questions that the text seems to answer, the best first. Whether it does is not
    checked."""
    # A document's own title reads better than the name of its file.
    title = next((one.title.strip() for one in headings if one.level == 1), "") or title
    asked = dict.fromkeys(match[1].strip() for match in _ASKED.finditer(body))
    of_tables = chain.from_iterable(_of_table(body, table, headings) for table in tables)
    named = (_of_heading(title, heading) for heading in headings if heading.level > 1)
    mixed = chain.from_iterable(zip_longest(asked, of_tables, _of_terms(body)))
    found = dict.fromkeys(one for one in chain(mixed, named) if one)
    return [one for one in found if len(one) <= MAX_CHARACTERS][:_MAX_OF_A_DOCUMENT]


def _of_table(body: str, table: Block, headings: Sequence[Heading]) -> Iterator[str]:
    """Yield questions after cells: by row and column."""
    rows = [row.texts(body) for row in table_rows(body, table) if not row.is_header]
    header = [_UNIT.sub("", name).strip() for name in table.header]
    if len(header) < 2 or not all(header[:2]):  # noqa: PLR2004 - a name and a value
        return
    is_chinese = detect_language(" ".join(header)) == "zh"
    above = [one.title for one in headings if one.start <= table.start]
    subject = _COUNTED_HEADING.sub("", above[-1].strip()) if above else ""
    for number, cells in enumerate(rows[:_MAX_ROWS]):
        # Another column for each row, so that the questions differ.
        column = 1 + number % (len(header) - 1)
        if len(cells) != len(header) or not cells[0].strip() or not cells[column].strip():
            continue
        row, name = cells[0].strip(), header[column]
        if _DIGIT.search(row) or len(row.split()) > _MAX_ROW_WORDS or not name:
            continue
        is_figure = bool(_NUMBERED.match(cells[column].strip()))
        if is_chinese and is_figure and subject and header[column] != table.header[column].strip():
            # A column with a unit may be called by those it is for: what it has is said above it.
            yield f"{row}{name}的{subject}是多少？"
        else:
            yield _chinese(row, name, is_figure) if is_chinese else _english(row, name, is_figure)


def _chinese(row: str, name: str, is_figure: bool) -> str:
    asked = "多少" if is_figure else "谁" if name.endswith(("人", "员", "者")) else "什么"
    return f"{row}的{name}是{asked}？"


def _english(row: str, name: str, is_figure: bool) -> str:
    if is_figure and _COUNTED.match(name):
        return f"How many {_lowered(name)} for {_lowered(row)}?"
    if _PERSON.fullmatch(name) and not is_figure:
        return f"Who is the {_lowered(name)} for {row}?"
    return f"What is the {_lowered(name)} of {row}?"


def _of_terms(body: str) -> Iterator[str]:
    """Yield questions after the terms of a glossary."""
    terms = dict.fromkeys(_UNIT.sub("", match[1]).strip() for match in _DEFINED.finditer(body))
    if len(terms) < _MIN_TERMS:
        return
    for term in terms:
        is_chinese = detect_language(term) == "zh"
        yield f"“{term}”是什么意思？" if is_chinese else f"What does “{term}” mean?"


def _of_heading(title: str, heading: Heading) -> str | None:
    name = _COUNTED_HEADING.sub("", heading.title.strip())
    if not name or name.endswith(("?", "？")) or name == title:
        return None
    if _GENERAL.fullmatch(name) or _GENERAL.fullmatch(title):
        return None
    if detect_language(name) == "zh":
        return f"《{title}》对{name}有什么规定？"
    return f"What does “{title}” say about “{name}”?"


def _lowered(words: str) -> str:
    """Return words as they stand inside a sentence; abbreviations and names stay as they are."""
    first, _, rest = words.partition(" ")
    return f"{first.lower()} {rest}".strip() if first.istitle() else words
