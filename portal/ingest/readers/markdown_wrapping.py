"""Lines of a Markdown paragraph that an editor wrapped, joined as a page shows them.

Authors also put facts on lines of their own and expect to see them so ("电话：…"), although a page
joins these as well. They are told apart by the length of the lines, and by labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from portal.text.characters.scripts import WIDE

# No editor wraps prose at fewer columns; a Chinese character takes two.
_MIN_COLUMNS = 60
# Ends of lines that are to stay line breaks.
_HARD_BREAKS = ("  ", "\\", "<br>", "<br/>", "<br />")
_FIRST_WORD = re.compile(rf"[{WIDE}]|[^\s{WIDE}]+")
_LABEL = re.compile(r"[*_]{0,2}\w[\w /-]{0,23}[*_]{0,2}[:：]")
_WIDE = re.compile(f"[{WIDE}]")


def without_wrapping(paragraph: str) -> str:
    """Return a paragraph's source in one line, or unchanged if its author broke the lines: if one
    of them is too short for having been wrapped, or a line break is marked."""
    lines = paragraph.split("\n")
    if len(lines) == 1 or any(line.endswith(_HARD_BREAKS) for line in lines):
        return paragraph
    lines = [line.strip() for line in lines]
    max_columns = max(map(_columns, lines))
    for line, following in pairwise(lines):
        if not _is_wrapped(line, following, max_columns):
            return paragraph
    return "".join(_joined(lines))


def _is_wrapped(line: str, following: str, max_columns: int) -> bool:
    """Return whether the next line continues this one: its first word did not fit, or is in lower
    case."""
    word = _FIRST_WORD.match(following)
    if word is None or line.endswith((":", "：")) or _LABEL.match(following):
        return False
    if following[0].islower():
        return True
    needed = _columns(line) + _columns(word.group()) + 1
    return max_columns >= _MIN_COLUMNS and needed > max_columns


def _columns(text: str) -> int:
    return len(text) + len(_WIDE.findall(text))


def _joined(lines: list[str]) -> Iterator[str]:
    last = ""
    for line in lines:
        if last and not (_WIDE.match(last) and _WIDE.match(line)):
            yield " "
        yield line
        last = line[-1:]
