"""Detection of ruled tables on a PDF page, with the text of their cells.

A table is a group of horizontal and vertical rules that touch, with at least two rows and two
columns. Two cells without a rule between them are one cell: its text appears once in a row, and in
each row that it spans.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from portal.ingest.readers.pdf.characters import Characters

# Drawings have more; examining each would cost more than the text of the page.
_MAX_OBJECTS = 5_000
_MAX_RULES = 2_000
_MAX_CELLS = 3_000
_MAX_SEGMENTS = 20_000
_TOLERANCE = 3.0  # points
_THIN = 2.5
_MIN_LENGTH = 8.0
_MIN_LINES = 3  # Around two rows, or two columns.
_MAX_REPEATED = 100  # Max length of a spanning cell's text that is repeated in each row.
_MAX_MEAN_CELL = 200  # Characters; longer ones are text laid out in columns, not cells.


class _Rule(NamedTuple):
    """A line from `start` to `end` at `at`: x of a vertical rule, y of a horizontal one."""

    at: float
    start: float
    end: float
    is_vertical: bool


@dataclass(slots=True)
class Table:
    """The position of a table on the page, in points with y upwards, and the text of its cells."""

    left: float
    bottom: float
    right: float
    top: float
    rows: list[list[str]] = field(default_factory=list)

    def holds(self, left: float, right: float, baseline: float) -> bool:
        middle = (left + right) / 2
        return self.left <= middle <= self.right and self.bottom <= baseline <= self.top

    def overlaps(self, other: Table) -> bool:
        return (
            self.bottom < other.top
            and other.bottom < self.top
            and self.left < other.right
            and other.left < self.right
        )


def find_tables(page: Any, characters: Characters) -> list[Table]:
    """Return the ruled tables of a page, top to bottom. Takes a raw handle of PDFium."""
    rules = list(_rules(page))
    if not 2 * _MIN_LINES <= len(rules) <= _MAX_RULES:
        return []
    tables = [table for group in _groups(rules) if (table := _table(group, characters))]
    return sorted(tables, key=lambda table: -table.top)


def _rules(page: Any) -> Iterator[_Rule]:
    count = pdfium.FPDFPage_CountObjects(page)
    if count > _MAX_OBJECTS:
        return
    segments = _MAX_SEGMENTS
    for index in range(count):
        drawn = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(drawn) != pdfium.FPDF_PAGEOBJ_PATH:
            continue
        segments -= pdfium.FPDFPath_CountSegments(drawn)
        if segments < 0:
            return
        for x1, y1, x2, y2 in _edges(drawn):
            if abs(x1 - x2) < _THIN and abs(y1 - y2) >= _MIN_LENGTH:
                yield _Rule((x1 + x2) / 2, min(y1, y2), max(y1, y2), is_vertical=True)
            elif abs(y1 - y2) < _THIN and abs(x1 - x2) >= _MIN_LENGTH:
                yield _Rule((y1 + y2) / 2, min(x1, x2), max(x1, x2), is_vertical=False)


def _edges(drawn: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of a path; for a thin rectangle, its centre line."""
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
        return
    if min(right.value - left.value, top.value - bottom.value) < _THIN:
        yield left.value, bottom.value, right.value, top.value
        return
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(drawn, matrix)
    begin = last = None
    for index in range(pdfium.FPDFPath_CountSegments(drawn)):
        segment = pdfium.FPDFPath_GetPathSegment(drawn, index)
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        here = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            begin = here
        elif kind == pdfium.FPDF_SEGMENT_LINETO and last is not None:
            yield (*last, *here)
        if pdfium.FPDFPathSegment_GetClose(segment) and begin is not None:
            yield (*here, *begin)
        last = here


def _groups(rules: Sequence[_Rule]) -> list[list[_Rule]]:
    """Return groups of rules that touch, directly or through others."""
    parents = list(range(len(rules)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    vertical = [place for place, rule in enumerate(rules) if rule.is_vertical]
    for place, rule in enumerate(rules):
        for other in () if rule.is_vertical else vertical:
            if _touches(rule, rules[other]):
                parents[root(place)] = root(other)
    groups: dict[int, list[_Rule]] = {}
    for place, rule in enumerate(rules):
        groups.setdefault(root(place), []).append(rule)
    return list(groups.values())


def _touches(one: _Rule, other: _Rule) -> bool:
    return (
        one.start - _TOLERANCE <= other.at <= one.end + _TOLERANCE
        and other.start - _TOLERANCE <= one.at <= other.end + _TOLERANCE
    )


def _table(rules: Sequence[_Rule], characters: Characters) -> Table | None:
    xs, ys = _borders(rules, is_vertical=True), _borders(rules, is_vertical=False)[::-1]
    if min(len(xs), len(ys)) < _MIN_LINES or len(xs) * len(ys) > _MAX_CELLS:
        return None
    table = Table(xs[0], ys[-1], xs[-1], ys[0])
    begins = [0] * (len(xs) - 1)  # The row in which the open cell of each column begins.
    is_titled = False
    for number, (top, bottom) in enumerate(pairwise(ys)):
        middle = (top + bottom) / 2
        table.rows.append([""] * (len(xs) - 1))
        column = 0
        while column < len(xs) - 1:
            end = column + 1
            while end < len(xs) - 1 and not _is_ruled(rules, xs[end], middle, is_vertical=True):
                end += 1
            text = _text(characters, xs[column], top, xs[end], bottom)
            center = (xs[column] + xs[end]) / 2
            if number == 0 or _is_ruled(rules, top, center, is_vertical=False):
                begins[column] = number
            spanned = table.rows[begins[column] :]
            whole = f"{spanned[0][column]}\n{text}".strip()
            for row in spanned if len(whole) <= _MAX_REPEATED else spanned[:1]:
                row[column] = whole
            # A title spans the table, and no cell below reaches up into it.
            is_titled = (
                end - column == len(xs) - 1 if number == 0 else is_titled and begins[column] > 0
            )
            column = end
    if is_titled:
        table.rows[0] = table.rows[0][:1]
    if sum(any(cell for cell in row) for row in table.rows) < 2:  # noqa: PLR2004 - a frame
        return None
    filled = [cell for row in table.rows for cell in row if cell]
    if len(filled) < len(xs) or sum(map(len, filled)) > _MAX_MEAN_CELL * len(filled):
        return None
    return table


def _borders(rules: Sequence[_Rule], *, is_vertical: bool) -> list[float]:
    """Return the positions of the rules in one direction. If the outermost are missing, as on the
    left and right of many tables, the ends of the rules across take their place."""
    borders = _cluster(rule.at for rule in rules if rule.is_vertical == is_vertical)
    # A rule may be drawn in parts, one per cell.
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for rule in rules:
        if borders and rule.is_vertical != is_vertical:
            place = round(rule.at / _TOLERANCE)
            starts[place] = min(rule.start, starts.get(place, rule.start))
            ends[place] = max(rule.end, ends.get(place, rule.end))
    before = [start for start in starts.values() if start < borders[0] - _MIN_LENGTH]
    after = [end for end in ends.values() if end > borders[-1] + _MIN_LENGTH]
    if len(before) >= max(_MIN_LINES, len(starts) / 2):
        borders.insert(0, min(before))
    if len(after) >= max(_MIN_LINES, len(ends) / 2):
        borders.append(max(after))
    return borders


def _cluster(places: Iterable[float]) -> list[float]:
    found: list[float] = []
    for place in sorted(places):
        if not found or place - found[-1] > _TOLERANCE:
            found.append(place)
    return found


def _is_ruled(rules: Sequence[_Rule], at: float, across: float, *, is_vertical: bool) -> bool:
    return any(
        rule.is_vertical == is_vertical
        and abs(rule.at - at) <= _TOLERANCE
        and rule.start - _TOLERANCE <= across <= rule.end + _TOLERANCE
        for rule in rules
    )


def _text(characters: Characters, left: float, top: float, right: float, bottom: float) -> str:
    # Text that only reaches into a cell, such as the tail of a letter above, is not part of it.
    inset = min(_TOLERANCE, (top - bottom) / 5)
    return characters.text_within(left, top - inset, right, bottom)
