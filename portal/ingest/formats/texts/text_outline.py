"""Headings of plain text: underlined, framed as in "== Fees ==" and 【费用】, marked with "#",
numbered as in 第一章, 一、 and 1.1, or as "1. Fees" and "FEES" below an empty line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from portal.domain.documents import Heading
from portal.text.layout.headings import without_frame

_HAN_DIGITS = "〇零一二三四五六七八九十百"
_CANDIDATE = re.compile(
    rf"""^[ \t\u3000]*(?:
    (?P<chapter>第[{_HAN_DIGITS}\d]{{1,5}}(?P<unit>[编篇卷部章节節條条]))(?=[ \t\u3000：:]|\w)
    |(?P<list>[{_HAN_DIGITS}]{{1,3}}、)(?=\S)
    |(?P<bracket>[（(][{_HAN_DIGITS}]{{1,3}}[）)])(?=\S)
    |(?P<dotted>\d{{1,2}}(?:\.\d{{1,2}}){{1,3}})\.?(?=[ \t\u3000]+[^\s\d]|[\u4e00-\u9fff])
    |(?P<number>\d{{1,2}}\.)(?=[ \t]+\w)
    |(?P<capitals>[A-ZÀ-Þ])(?=[A-ZÀ-Þ\ ,&'’()/:-]{{3,59}}(?:\ \d{{1,2}})?$)
    |(?P<hashes>\#{{1,6}})[ \t]+(?=\S)
    |(?P<framed>(?P<frame>[=\-~*#─━—])(?P=frame){{1,9}})[ \t]*
        (?!(?P=frame))(?=[^\n]{{1,90}}(?P=frame){{2}}[ \t]*$)
    |(?P<lenticular>【)(?=[^】\n]{{1,30}}】[ \t]*$)
    |(?P<line>(?P<stroke>[=\-~^*+])(?P=stroke){{2,}})[ \t]*$
    )""",
    re.MULTILINE | re.VERBOSE,
)
# Longer lines are sentences. Full words of Latin text take more characters.
_MAX_LENGTHS = {
    "chapter": 30, "list": 20, "bracket": 20, "dotted": 40, "number": 30, "capitals": 60,
    "hashes": 80, "framed": 80, "lenticular": 32, "line": 80,
}  # fmt: skip
_MARKED = ("hashes", "framed", "lenticular")
_LATIN_LENGTH = 80
_ENDS_SENTENCE = re.compile(r"[。！？；，、,;.!?…：:][”’」』）)\"']*$")
_COLUMNS = re.compile(r"[.．·…]{3,}[ \t]*\d{1,4}$|\S(?:\t| {3,})\S")  # Of contents or a table.
_MAX_HEADING_LINE = 200
_MIN_OVERLINE = 20
# Below a title: nothing, strokes or "Present: Anna"; a paragraph goes on with words.
_LABEL = re.compile(r"[^\W\d_a-z][^\n:：,，.。;；]{0,20}(?::\s|：)")
_BELOW_TITLE = re.compile(rf"\n(?:[ \t]*(?:[=\-~^*+]{{3,}}[ \t]*)?(?:\n|\Z)|{_LABEL.pattern})")
_SHORT_LINE = 30  # Shorter lines were not broken by the layout.
_MAX_UNBROKEN = 50  # Longer ones may have been broken if an indented line follows.
# "1.4 Give us your details. Forms that arrive after the 18th of" is an item that the layout broke.
_INNER_SENTENCE = re.compile(r"[a-z]{3}[.!?] [A-Z]")
_CONTINUES = re.compile(r"[ \t]*(?:[a-z]|\d+[ ,%)](?!\S*[.)]\s))")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be a heading; headings of one level have the same `kind`."""

    start: int
    end: int
    title: str
    kind: str


def text_headings(text: str) -> tuple[Heading, ...]:
    """Return the headings of a plain text; a new kind is one level below the heading before it.
    Lines of a table of contents, which have nothing below them, are skipped. Linear in
    len(text)."""
    lines = [line for line in _lines(text) if _is_alone(text, line)]
    last = {line.title: line.start for line in lines}
    levels: dict[str, int] = {}
    headings, level = [], 0
    for line, following in pairwise([*lines, None]):
        if line is None or (
            following and last[line.title] > line.start and _adjoin(text, line, following)
        ):
            continue
        level = levels.setdefault(line.kind, level + 1)
        headings.append(Heading(level, line.title, line.start))
    return tuple(headings)


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that may be headings, without those of lists and tables of contents."""
    matched = (line for match in _CANDIDATE.finditer(text) if (line := _line(text, match)))
    # A numbered line that is underlined is found twice, and counts as underlined.
    found = list({line.start: line for line in matched}.values())
    for place, line in enumerate(found):
        before = found[place - 1] if place else None
        after = found[place + 1] if place + 1 < len(found) else None
        if not (_are_neighbours(text, before, line) or _are_neighbours(text, line, after)):
            yield line


def _line(text: str, match: re.Match[str]) -> _Line | None:
    kind = next(name for name in _MAX_LENGTHS if match[name])
    if kind == "line":
        return _find_ruled(text, match)
    start = match.start(kind)
    end = text.find("\n", start, start + _MAX_HEADING_LINE)
    end = end if end >= 0 else len(text)
    if end - start > _MAX_HEADING_LINE:
        return None
    title = text[start:end].strip()
    if kind in _MARKED:
        title = without_frame(title)
    if kind == "number" and title.isupper():
        kind = "capitals"
    is_latin = kind in {"dotted", "number"} and title.isascii()
    if is_latin and _is_broken(text, title, end):
        return None
    is_long = len(title) > (_LATIN_LENGTH if is_latin else _MAX_LENGTHS[kind])
    is_wordless = not any(map(str.isalnum, title))
    if (
        is_long
        or is_wordless
        or (kind not in _MARKED and (_ENDS_SENTENCE.search(title) or _COLUMNS.search(title)))
    ):
        return None
    if kind in {"number", "capitals"}:
        return _Line(start, end, title, kind)
    subkind = {
        "chapter": match["unit"], "dotted": str(match[kind].count(".")), "framed": match["frame"],
    }.get(kind, match[kind])  # fmt: skip
    return _Line(start, end, title, kind if kind in {"list", "bracket"} else kind + (subkind or ""))


def _is_broken(text: str, title: str, end: int) -> bool:
    """Return whether a numbered line is an item of several sentences or lines."""
    below = text[end + 1 : end + 1 + _MAX_HEADING_LINE].partition("\n")[0]
    is_indented = below[:1].isspace() and below.strip()[:1].isalnum()
    return bool(
        _INNER_SENTENCE.search(title)
        or _CONTINUES.match(below)
        or (is_indented and len(title) > _MAX_UNBROKEN)
    )


def _find_ruled(text: str, match: re.Match[str]) -> _Line | None:
    """Return the line above an underline of about the same length, between two such rules, or below
    a long double rule."""
    length = match.end("line") - match.start("line")
    start = (
        text.rfind("\n", max(match.start() - _MAX_HEADING_LINE, 0), max(match.start() - 1, 0)) + 1
    )
    title = text[start : match.start()].strip()
    width = sum(1 if character < "\u2e80" else 2 for character in title)
    is_framed = text.endswith(match["line"] + "\n", 0, start)
    if not title and match["stroke"] == "=" and length >= _MIN_OVERLINE:
        start = match.end() + 1
        end = text.find("\n", start, start + _MAX_HEADING_LINE)
        is_title = end >= 0 and _BELOW_TITLE.match(text, end) and not _LABEL.match(text, start)
        title = text[start:end].strip() if is_title else ""
    elif width > 2 * length or (2 * length > 4 * width + 8 and not is_framed):
        return None
    if not title or len(title) > _MAX_LENGTHS["line"]:
        return None
    # "5.3.1   20 May 2025" between two rules is a heading, unless it is the header of a table.
    if _COLUMNS.search(title) and (not is_framed or _has_columns_below(text, match.end())):
        return None
    if not any(map(str.isalnum, title)) or text[start].isspace() or _ENDS_SENTENCE.search(title):
        return None
    line = _Line(start, start + len(title), title, f"line{match['stroke']}")
    # Else the last row of a table above a rule would count as the neighbour of a framed heading.
    return line if _is_alone(text, line) else None


def _has_columns_below(text: str, end: int) -> bool:
    """Return whether the next line with text has columns."""
    below = text[end : end + _MAX_HEADING_LINE].lstrip("\n").partition("\n")[0]
    return _COLUMNS.search(below) is not None


def _are_neighbours(text: str, above: _Line | None, below: _Line | None) -> bool:
    """Return whether two lines of one kind have nothing between them, like items of a list."""
    return bool(above and below and above.kind == below.kind and _adjoin(text, above, below))


def _adjoin(text: str, above: _Line, below: _Line) -> bool:
    return not text[above.end : below.start].strip("#= \t\n\u3000")


def _is_alone(text: str, line: _Line) -> bool:
    """Return whether a line neither continues the one above nor, if marked with hashes, a number or
    capitals, leads to the one below."""
    begin = text.rfind("\n", 0, line.start) + 1
    above = text[max(begin - _MAX_HEADING_LINE, 0) : max(begin - 1, 0)].rpartition("\n")[2].strip()
    if line.kind.startswith(("hashes", "number", "capitals")):
        below = text[line.end + 1 : line.end + 2]
        # Indented text below "1. Remove the lid" belongs to that step.
        is_short = line.kind == "number" and len(line.title) <= _MAX_UNBROKEN
        return not above and (below in {"", "\n"} or (is_short and not below.isspace()))
    is_stroke = bool(above) and not any(map(str.isalnum, above))
    if line.kind.startswith("line"):
        return not above or is_stroke
    return not above or is_stroke or len(above) <= _SHORT_LINE or bool(_ENDS_SENTENCE.search(above))
