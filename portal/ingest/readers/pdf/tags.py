"""Tables of a tagged PDF page, by its structure tree: rules are not needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import pypdfium2.raw as pdfium

from portal.ingest.readers.pdf.tables import Table, text_within

_MAX_ELEMENTS = 20_000
_MAX_OBJECTS = 20_000
_MAX_TYPE_BYTES = 64
_MIN_CELLS = 2  # In a row, and rows in a table; less is layout.
_TOLERANCE = 1.0  # points

_Box = tuple[float, float, float, float]  # Left, top, right, bottom.
_Boxes = dict[int, list[_Box]]


def find_tables(page: Any, text_page: Any) -> list[Table]:
    """Return the tagged tables of a page. Takes raw handles of PDFium."""
    tree = pdfium.FPDF_StructTree_GetForPage(page)
    if not tree:
        return []
    try:
        count = pdfium.FPDF_StructTree_CountChildren(tree)
        roots = [pdfium.FPDF_StructTree_GetChildAtIndex(tree, place) for place in range(count)]
        elements = list(_outermost(roots, {"Table"}))
        boxes = _boxes(page) if elements else {}
        return [table for element in elements if (table := _table(element, boxes, text_page))]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def _table(element: Any, boxes: _Boxes, text_page: Any) -> Table | None:
    rows: list[list[str]] = []
    filled: list[_Box] = []
    for row in _outermost(_children(element), {"TR"}):
        cells = []
        for cell in _outermost(_children(row), {"TD", "TH"}):
            inside = [box for number in _contents(cell) for box in boxes.get(number, ())]
            box = _box_around(inside) if inside else None
            cells.append(text_within(text_page, *box) if box else "")
            filled += [box] if box else []
        rows.append(cells)
    width = max(map(len, rows), default=0)
    if len(rows) < _MIN_CELLS or width < _MIN_CELLS or not filled:
        return None
    left, top, right, bottom = _box_around(filled)
    return Table(
        left - _TOLERANCE,
        bottom - _TOLERANCE,
        right + _TOLERANCE,
        top + _TOLERANCE,
        [cells + [""] * (width - len(cells)) for cells in rows],
    )


def _box_around(boxes: list[_Box]) -> _Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), max(tops), max(rights), min(bottoms)


def _outermost(elements: Iterable[Any], types: set[str]) -> Iterator[Any]:
    """Yield the outermost elements of these types among some and all below them, in order."""
    waiting = list(elements)[::-1]
    for _ in range(_MAX_ELEMENTS):
        if not waiting:
            return
        element = waiting.pop()
        if _type(element) in types:
            yield element
        else:
            waiting += list(_children(element))[::-1]


def _contents(element: Any) -> Iterator[int]:
    """Yield the numbers of the marked content of an element and of all below it, in order."""
    waiting = [element]
    for _ in range(_MAX_ELEMENTS):
        if not waiting:
            return
        below = waiting.pop()
        if isinstance(below, int):
            yield below
            continue
        for place in reversed(range(pdfium.FPDF_StructElement_CountChildren(below))):
            child = pdfium.FPDF_StructElement_GetChildAtIndex(below, place)
            number = pdfium.FPDF_StructElement_GetChildMarkedContentID(below, place)
            if child:
                waiting.append(child)
            elif number >= 0:
                waiting.append(number)


def _children(element: Any) -> Iterator[Any]:
    for place in range(pdfium.FPDF_StructElement_CountChildren(element)):
        if child := pdfium.FPDF_StructElement_GetChildAtIndex(element, place):
            yield child


def _type(element: Any) -> str:
    buffer = ctypes.create_string_buffer(_MAX_TYPE_BYTES)
    length = pdfium.FPDF_StructElement_GetType(element, buffer, _MAX_TYPE_BYTES)
    return buffer.raw[: min(length, _MAX_TYPE_BYTES)].decode("utf-16-le", "replace").rstrip("\0")


def _boxes(page: Any) -> _Boxes:
    """Return the places of the text objects of a page, by the marked content they are in."""
    boxes: _Boxes = {}
    for index in range(min(pdfium.FPDFPage_CountObjects(page), _MAX_OBJECTS)):
        drawn = pdfium.FPDFPage_GetObject(page, index)
        number = pdfium.FPDFPageObj_GetMarkedContentID(drawn)
        if number < 0 or pdfium.FPDFPageObj_GetType(drawn) != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        if pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
            box = (left.value, top.value, right.value, bottom.value)
            boxes.setdefault(number, []).append(box)
    return boxes
