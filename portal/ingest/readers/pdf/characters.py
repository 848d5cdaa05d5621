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
_CUT = re.compile(r"\x02|\r\n")  # Where PDFium ended a line, with or without a hyphen.
JOINER = "\u2060"  # Takes the place of a line end within a word, so that indexes stay.
_NOT_VISIBLE = frozenset("\0\r\n" + JOINER)
# In multiples of the height of a character.
_SAME_LINE = 0.5  # Between baselines: raised characters are on the line too.
_LEVEL = 0.1
_WORD_GAP = 0.13
_MAX_GAP = 0.5  # Within a line.
_MAX_OVERLAP = 0.5
_TURNED = math.sin(math.radians(45))


class Characters:
    """The characters of one page. Measures are in points, from the lower left corner."""

    def __init__(self, text_page: Any) -> None:
        self._page = text_page
        # Made once, because pages have thousands of characters.
        self._box = [ctypes.c_double() for _ in range(4)]
        self._origin = ctypes.c_double(), ctypes.c_double()
        self._loose, self._matrix = pdfium.FS_RECTF(), pdfium.FS_MATRIX()
        self._name = ctypes.create_string_buffer(_MAX_FONT_NAME)

    @cached_property
    def text(self) -> str:
        """The text, with a NUL for a glyph without a character."""
        # One call per character is most of the cost of a page, so nothing else is done in the loop.
        unicode, count = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_CountChars(self._page)
        text = "".join([chr(unicode(self._page, index)) for index in range(count)])
        lines = text.splitlines()
        # PDFium takes a page of short cells for vertical text, and ends a line after each letter.
        is_cut = 2 * sum(len(line) == 1 for line in lines) > len(lines)
        return _CUT.sub(self._mend, text) if is_cut else text

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

    def is_turned(self, index: int) -> bool:
        """Return whether a character does not stand upright."""
        return abs(math.sin(pdfium.FPDFText_GetCharAngle(self._page, index))) > _TURNED

    def text_within(self, left: float, top: float, right: float, bottom: float) -> str:
        """Return the lines in a rectangle. A character counts where the middle of its baseline is,
        because the outlines of fonts that are not in the file are unknown."""
        first = bisect_left(self._placed, (bottom,))
        end = bisect_right(self._placed, (top, math.inf))
        inside = [one for one in self._placed[first:end] if left <= one[1] <= right]
        text, before = "", None
        for y, x, index in sorted(inside, key=lambda one: one[2]):
            if before:
                between = self.text[before[2] + 1 : index]
                is_apart = between not in {"", " "}
                # Characters of turned text stand above each other without being lines.
                is_below = abs(y - before[0]) > _SAME_LINE * self.height(index)
                if is_below and (is_apart or x < before[1]):
                    text += "\n"
                elif between == " " or (is_apart and not self._touches(before[2], index)):
                    text += " "
            text += self.text[index]
            before = y, x, index
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))

    def _mend(self, end: re.Match[str]) -> str:
        """Return what stands for an end of a line that is within a line."""
        before, after = end.start() - 1 if end.group() != "\x02" else end.start(), end.end()
        if before < 0 or after >= pdfium.FPDFText_CountChars(self._page):
            return end.group()
        height = self.height(after)
        *_, above = self.place(before, before)
        *_, baseline = self.place(after, after)
        gap = self._gap(before, after)
        is_within = abs(above - baseline) <= _LEVEL * height and gap <= _MAX_GAP * height
        if not is_within or gap < -_MAX_OVERLAP * height:
            return end.group()
        if end.group() == "\x02":
            return "-"
        return (JOINER if gap <= _WORD_GAP * height else " ") + JOINER

    def _touches(self, before: int, after: int) -> bool:
        """Return whether a character follows another without a space."""
        height = self.height(after)
        return -_MAX_OVERLAP * height <= self._gap(before, after) <= _WORD_GAP * height

    def _gap(self, before: int, after: int) -> float:
        """Return the distance of two characters of a line; infinite if it is unknown."""
        box = self._loose
        if not pdfium.FPDFText_GetLooseCharBox(self._page, before, box):
            return math.inf
        right = box.right
        is_known = pdfium.FPDFText_GetLooseCharBox(self._page, after, box)
        return float(box.left - right) if is_known else math.inf

    @cached_property
    def _placed(self) -> list[tuple[float, float, int]]:
        """Return the middles of the baselines (y, x) and the indexes of the visible characters,
        from the bottom."""
        x, y = self._origin
        box = self._loose
        placed = []
        for index, character in enumerate(self.text):
            # PDFium may write other cells between the letters of a word, with a space on each side.
            is_made = character == " " and pdfium.FPDFText_IsGenerated(self._page, index) == 1
            if not is_made and character not in _NOT_VISIBLE:
                pdfium.FPDFText_GetCharOrigin(self._page, index, x, y)
                is_known = pdfium.FPDFText_GetLooseCharBox(self._page, index, box)
                middle = (box.left + box.right) / 2 if is_known else x.value
                is_turned = is_known and self.is_turned(index)
                placed.append(((box.bottom + box.top) / 2 if is_turned else y.value, middle, index))
        return sorted(placed)
