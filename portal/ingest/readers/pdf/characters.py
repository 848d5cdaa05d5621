"""Measures of the characters of a PDF page, by their index: position, height, type."""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any

import pypdfium2.raw as pdfium

_BOLD_WEIGHT = 600
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|medi(?!um)|simhei", re.IGNORECASE)
_MAX_FONT_NAME = 128
_LINE_ENDS = frozenset({0, 10, 13})  # NUL marks a glyph without a character.
_SAME_LINE = 0.5  # of the height of a character: raised ones are on the line too.


class Characters:
    """The characters of one page. Measures are in points, from the lower left corner."""

    def __init__(self, text_page: Any) -> None:
        self._page = text_page
        # Made once, because pages have thousands of characters.
        self._box = [ctypes.c_double() for _ in range(4)]
        self._origin = ctypes.c_double(), ctypes.c_double()
        self._loose, self._matrix = pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(_MAX_FONT_NAME)

    def place(self, first: int, last: int) -> tuple[float, float, float]:
        """Return left, right and baseline of the characters from `first` to `last` of a line."""
        pdfium.FPDFText_GetCharOrigin(self._page, first, *self._origin)
        left, right, _, _ = self._box
        pdfium.FPDFText_GetCharBox(self._page, first, *self._box)
        begin = left.value
        pdfium.FPDFText_GetCharBox(self._page, last, *self._box)
        return begin, right.value, self._origin[1].value

    def height(self, index: int) -> float:
        """Return the height of a character's line, at least 1."""
        if not pdfium.FPDFText_GetLooseCharBox(self._page, index, self._loose):
            return 1.0
        return float(max(abs(self._loose.top - self._loose.bottom), 1.0))

    def type(self, index: int) -> tuple[float, str]:
        """Return the size of a character as it is shown, and its style."""
        size = pdfium.FPDFText_GetFontSize(self._page, index)
        if pdfium.FPDFText_GetMatrix(self._page, index, self._matrix):
            # Many programs write text in size 1 and scale it.
            size *= math.hypot(self._matrix.c, self._matrix.d) or 1.0
            if abs(self._matrix.b) > abs(self._matrix.a):
                return size, "turned"
        self._name.value = b""
        pdfium.FPDFText_GetFontInfo(self._page, index, self._name, _MAX_FONT_NAME, None)
        is_bold = (
            _BOLD_NAME.search(self._name.value)
            or pdfium.FPDFText_GetFontWeight(self._page, index) >= _BOLD_WEIGHT
        )
        return size, "bold" if is_bold else ""

    def text_within(self, left: float, top: float, right: float, bottom: float) -> str:
        """Return the lines in a rectangle. A character counts where the middle of its baseline is,
        because the outlines of fonts that are not in the file are unknown."""
        first = bisect_left(self._placed, (bottom,))
        end = bisect_right(self._placed, (top, math.inf))
        inside = [one for one in self._placed[first:end] if left <= one[1] <= right]
        text, before = "", None
        for y, x, index in sorted(inside, key=lambda one: one[2]):
            if before:
                is_apart = index > before[2] + 1
                # Characters of turned text stand above each other without being lines.
                is_below = abs(y - before[0]) > _SAME_LINE * self.height(index)
                text += "\n" if is_below and (is_apart or x < before[1]) else " " * is_apart
            text += chr(pdfium.FPDFText_GetUnicode(self._page, index))
            before = y, x, index
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))

    @cached_property
    def _placed(self) -> list[tuple[float, float, int]]:
        """Return the baselines, middles and indexes of the visible characters, from the bottom."""
        x, y = self._origin
        box = self._loose
        placed = []
        for index in range(pdfium.FPDFText_CountChars(self._page)):
            if pdfium.FPDFText_GetUnicode(self._page, index) not in _LINE_ENDS:
                pdfium.FPDFText_GetCharOrigin(self._page, index, x, y)
                is_known = pdfium.FPDFText_GetLooseCharBox(self._page, index, box)
                middle = (box.left + box.right) / 2 if is_known else x.value
                placed.append((y.value, middle, index))
        return sorted(placed)
