"""The statements of a source: sentences, list items and table rows that can be quoted alone.

Headings, table headers and the line that introduces a list are context: they count for what stands
below them and are never quoted by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from portal.domain.answering import Source
from portal.text.scripts import HAN
from portal.text.sentences import LIST_ITEM, each_sentence

_CELL_BORDER = re.compile(r"[^\S\n]*(?:\s\||\|\s|\t)[^\S\n]*")
_ENDS_STATEMENT = re.compile(r"[。！？；｡….!?;][”’」』）》】〉〕\"')\]]*$")
_INTRODUCES = (":", "：")
# A line without a full stop that is shorter than this, and names no figure, reads as a heading.
_MAX_HEADING_CHARACTERS = 60
_MAX_HAN_HEADING_CHARACTERS = 24
_CHAPTER = re.compile(r"(?:第[一二三四五六七八九十百\d]+[章节節条條部篇]|\d+(?:\.\d+)*[.、]?\s)")
_DIGIT = re.compile(r"\d")
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True)
class Statement:
    """Characters `start` to `end` of a source's text. `context` is what it is read under: the
    headings above it, the line that introduces its list, or the header of its table. A table row
    has `cells`, and a `header` when the table has one."""

    start: int
    end: int
    context: str = ""
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


def statements(source: Source) -> list[Statement]:
    """Return what can be quoted of a source, in order."""
    found: list[Statement] = []
    headings = [source.heading or ""]
    for kind, lines in _blocks(source):
        if kind == "heading":
            headings = [source.heading or "", lines[0].text]
        elif kind == "table":
            found += _rows(lines, " ".join(headings))
        else:
            found += _sentences(source.text, lines[0].start, lines[-1].end, " ".join(headings))
    return found


def _blocks(source: Source) -> Iterator[tuple[str, list[_Line]]]:
    """Group the lines of a source into headings, tables and text."""
    lines = list(_lines(source.text))
    kinds = [_kind(source, lines, place) for place in range(len(lines))]
    place = 0
    while place < len(lines):
        end = place + 1
        if kinds[place] != "heading":
            while end < len(lines) and kinds[end] == kinds[place]:
                end += 1
        kept = [line for line in lines[place:end] if line.text]
        # A lone line with a bar in it is text.
        kind = "text" if kinds[place] == "table" and len(kept) < 2 else kinds[place]  # noqa: PLR2004
        if kept:
            yield kind, kept
        place = end


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for raw in text.split("\n"):
        bare = raw.strip()
        first = start + len(raw) - len(raw.lstrip())
        yield _Line(first, first + len(bare), bare)
        start += len(raw) + 1


def _kind(source: Source, lines: list[_Line], place: int) -> str:
    line = lines[place]
    if not line.text:
        # An empty line ends a table and belongs to the text around it.
        return "text"
    if line.start in source.heading_starts:
        return "heading"
    if _CELL_BORDER.search(line.text):
        return "table"
    if not source.heading_starts and _reads_as_heading(lines, place):
        return "heading"
    return "text"


def _reads_as_heading(lines: list[_Line], place: int) -> bool:
    """Tell whether a line of a text without known headings is one."""
    text = lines[place].text
    limit = _MAX_HAN_HEADING_CHARACTERS if _HAN.search(text) else _MAX_HEADING_CHARACTERS
    if len(text) > limit or _ENDS_STATEMENT.search(text) or any(c in text for c in ":：,，"):
        return False
    stands_alone = place == 0 or not lines[place - 1].text
    stands_alone = (
        stands_alone and place + 1 < len(lines) and any(line.text for line in lines[place + 1 :])
    )
    if _CHAPTER.match(text):
        return stands_alone
    return stands_alone and not LIST_ITEM.match(text) and not _DIGIT.search(text)


def _rows(lines: list[_Line], context: str) -> Iterator[Statement]:
    header, *rows = [_cells(line.text) for line in lines]
    named = " ".join(header)
    for line, cells in zip(lines[1:], rows, strict=True):
        yield Statement(line.start, line.end, f"{context} {named}", cells, header)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in _CELL_BORDER.split(line.strip("|").strip()))


def _sentences(text: str, start: int, end: int, context: str) -> Iterator[Statement]:
    spans = [(start + first, start + last) for first, last in each_sentence(text[start:end])]
    introduction = ""
    for place, (first, last) in enumerate(spans):
        sentence = text[first:last]
        following = text[slice(*spans[place + 1])] if place + 1 < len(spans) else ""
        if sentence.endswith(_INTRODUCES) and LIST_ITEM.match(following):
            introduction = sentence
            continue
        if not LIST_ITEM.match(sentence):
            introduction = ""
        yield Statement(first, last, f"{context} {introduction}".strip())
