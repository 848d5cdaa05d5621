"""Faults of quotations: headings, header rows or questions alone, and half sentences."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

_WORDS = re.compile(r"\w+")
# Also before the mark of a footnote.
_ENDS_SENTENCE = re.compile(r"[。！？；….!?;][”’」』）》\"')\]*]*(?:\[\d{1,3}\])*\s*\Z")
_OPENS_PIECE = re.compile(r"[|\t:：][\s*]*\Z")
_LINE_MARKER = re.compile(r"(?:\s|[-*+•>#|]|\d+[.)]|\[[ xX]\]|\*\*)*")
_CELL_BORDER = re.compile(r"\s*(?:\||\t)|\A\s*\Z")
_HEADER_BORDER = re.compile(r"\|\s*:?-{3,}")
_MAX_HEADING_CHARACTERS = 40
_HEADING_TAGS = "h1, h2, h3, h4, h5, h6, caption, title"


def headings(path: Path) -> frozenset[str]:
    """Return the words of a document's headings, captions and header rows, and of its name; only of
    its name if the format is not text."""
    find = _FINDERS.get(path.suffix)
    found = find(path.read_text(encoding="utf-8", errors="replace")) if find else []
    return frozenset(filter(None, map(words, [path.stem, *found])))


def words(text: str) -> str:
    """Return the words of a text, run together, so that only they are compared."""
    return "".join(_WORDS.findall(text)).lower()


def is_heading(quoted: str, known: frozenset[str]) -> bool:
    """Return whether a quotation is nothing but headings, or a question, as in a FAQ."""
    lines = [found for line in quoted.splitlines() if (found := words(line))]
    is_known = words(quoted) in known or all(line in known for line in lines)
    return is_known or quoted.rstrip().endswith(("?", "？"))


def is_half(text: str, start: int, end: int) -> bool:
    """Return whether characters `start` to `end` begin or end inside a sentence, a cell or a
    line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    after = text[end:].split("\n", 1)[0]
    begins = any(
        (_LINE_MARKER.fullmatch(before), _ENDS_SENTENCE.search(before), _OPENS_PIECE.search(before))
    )
    ends = _CELL_BORDER.match(after) or _ENDS_SENTENCE.search(text[start:end])
    return not (begins and ends)


def _headings_of_markdown(text: str) -> list[str]:
    lines = text.splitlines()
    found = [line for line in lines if line.startswith("#")]
    return found + [line for line, following in pairwise(lines) if _HEADER_BORDER.match(following)]


def _short_lines(text: str) -> list[str]:
    """Return the lines of plain text that read as headings: short, alone after an empty line."""
    lines = ["", *map(str.strip, text.splitlines())]
    return [
        line
        for before, line in pairwise(lines)
        if line
        and not before
        and len(line) <= _MAX_HEADING_CHARACTERS
        and not _ENDS_SENTENCE.search(line)
        and not set(":：,，") & set(line)
    ]


def _headings_of_html(text: str) -> list[str]:
    """Return headings, captions, and the header cells of each row."""
    tree = LexborHTMLParser(text)
    rows = ("".join(cell.text() for cell in row.css("th")) for row in tree.css("tr"))
    return [*(one.text() for one in tree.css(_HEADING_TAGS)), *rows]


_FINDERS = {".html": _headings_of_html, ".md": _headings_of_markdown, ".txt": _short_lines}
