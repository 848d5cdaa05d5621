"""Tables, list items and artifacts of a tagged PDF page, by its structure tree."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pypdfium2.raw as pdfium

from portal.ingest.readers.pdf.characters import Characters
from portal.ingest.readers.pdf.tables import Table

_MAX_ELEMENTS = 20_000
_MAX_OBJECTS = 20_000
_MAX_TYPE_BYTES = 64
_MIN_CELLS = 2  # In a row, and rows in a table; less is layout.
_TOLERANCE = 1.0  # points
# Of the height of a line: a full-width bracket is drawn on one side of its middle.
_BESIDE_INK = 0.2
_BESIDE_BASELINE = 0.1  # points: PDFium measures the ink and the baseline in different precisions.

_Box = tuple[float, float, float, float]  # Left, top, right, bottom.
_Boxes = dict[int, list[_Box]]


def find_tables(page: Any, characters: Characters) -> list[Table]:
    """Return the tagged tables of a page. Takes a raw handle of PDFium."""
    with _roots(page) as roots:
        elements = list(_outermost(roots, {"Table"}))
        boxes = _boxes(page) if elements else {}
        return [table for element in elements if (table := _table(element, boxes, characters))]


class LineTags:
    """The tags of the lines of a page: items of lists, headers and footers."""

    def __init__(self, page: Any, text_page: Any) -> None:
        self._text_page = text_page
        with _roots(page) as roots:
            self.is_tagged = bool(roots)
            self._items = {number for item in _items(roots) for number in _words_of_item(item)}

    def begins_item(self, index: int) -> bool:
        """Return whether a character begins an item whose bullet is drawn, not written. True once
        for each item, because its further lines have the same content number."""
        number = pdfium.FPDFPageObj_GetMarkedContentID(self._object(index))
        if number not in self._items:
            return False
        self._items.remove(number)
        return True

    def is_artifact(self, index: int) -> bool:
        """Return whether a character is not part of the text, such as a header."""
        drawn = self._object(index)
        count = pdfium.FPDFPageObj_CountMarks(drawn) if self.is_tagged else 0
        marks = (pdfium.FPDFPageObj_GetMark(drawn, place) for place in range(max(count, 0)))
        return any(_mark_name(mark) == "Artifact" for mark in marks)

    def _object(self, index: int) -> Any:
        return pdfium.FPDFText_GetTextObject(self._text_page, index)


def _items(roots: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of lists, including nested ones."""
    waiting = list(roots)
    for _ in range(_MAX_ELEMENTS):
        if not waiting:
            return
        element = waiting.pop()
        if _type(element) == "LI":
            yield element
        waiting += _children(element)


def _words_of_item(item: Any) -> Iterator[int]:
    """Yield the number of the first content of an item, without its label."""
    numbers = (
        number
        for place in range(pdfium.FPDF_StructElement_CountChildren(item))
        for number in _contents_at(item, place)
    )
    yield from islice(numbers, 1)


def _contents_at(item: Any, place: int) -> Iterator[int]:
    child = pdfium.FPDF_StructElement_GetChildAtIndex(item, place)
    number = pdfium.FPDF_StructElement_GetChildMarkedContentID(item, place)
    if child:
        yield from () if _type(child) == "Lbl" else _contents(child)
    elif number >= 0:
        yield number


def _mark_name(mark: Any) -> str:
    buffer, length = ctypes.create_string_buffer(_MAX_TYPE_BYTES), ctypes.c_ulong()
    wide = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
    pdfium.FPDFPageObjMark_GetName(mark, wide, _MAX_TYPE_BYTES, length)
    return (
        buffer.raw[: min(length.value, _MAX_TYPE_BYTES)].decode("utf-16-le", "replace").rstrip("\0")
    )


@contextmanager
def _roots(page: Any) -> Iterator[list[Any]]:
    """Open the structure tree of a page: its outermost elements, none if it is not tagged."""
    tree = pdfium.FPDF_StructTree_GetForPage(page)
    if not tree:
        yield []
        return
    try:
        count = pdfium.FPDF_StructTree_CountChildren(tree)
        yield [pdfium.FPDF_StructTree_GetChildAtIndex(tree, place) for place in range(count)]
    finally:
        pdfium.FPDF_StructTree_Close(tree)


def _table(element: Any, boxes: _Boxes, characters: Characters) -> Table | None:
    rows: list[list[str]] = []
    filled: list[_Box] = []
    for row in _outermost(_children(element), {"TR"}):
        cells = []
        for cell in _outermost(_children(row), {"TD", "TH"}):
            inside = [box for number in _contents(cell) for box in boxes.get(number, ())]
            box = _box_of_words(inside) if inside else None
            cells.append(characters.text_within(*box) if box else "")
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
        [
            cells if not place and len(cells) == 1 else cells + [""] * (width - len(cells))
            for place, cells in enumerate(rows)
        ],
    )


def _box_of_words(drawn: list[_Box]) -> _Box:
    """Return the box of the characters of a cell, of which `drawn` are the outlines."""
    left, top, right, bottom = _box_around(drawn)
    beside = _BESIDE_INK * min(one[1] - one[3] for one in drawn)
    return left - beside, top, right + beside, bottom


def _box_around(boxes: list[_Box]) -> _Box:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), max(tops), max(rights), min(bottoms)


def _outermost(elements: Iterable[Any], types: set[str]) -> Iterator[Any]:
    """Yield the outermost elements of these types, among `elements` and all below them, in
    order."""
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
    """Return the boxes of the text objects of a page, by the marked content that they are in. They
    reach to the baseline, which the ink of a dash does not."""
    boxes: _Boxes = {}
    matrix = pdfium.FS_MATRIX()
    for index in range(min(pdfium.FPDFPage_CountObjects(page), _MAX_OBJECTS)):
        drawn = pdfium.FPDFPage_GetObject(page, index)
        number = pdfium.FPDFPageObj_GetMarkedContentID(drawn)
        if number < 0 or pdfium.FPDFPageObj_GetType(drawn) != pdfium.FPDF_PAGEOBJ_TEXT:
            continue
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        if pdfium.FPDFPageObj_GetBounds(drawn, left, bottom, right, top):
            pdfium.FPDFPageObj_GetMatrix(drawn, matrix)
            low = min(bottom.value, matrix.f - _BESIDE_BASELINE)
            high = max(top.value, matrix.f + _BESIDE_BASELINE)
            box = (left.value, high, right.value, low)
            boxes.setdefault(number, []).append(box)
    return boxes
