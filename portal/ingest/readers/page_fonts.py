"""Fonts for text whose font a PDF does not embed, and a count of characters without any.

Fonts are opened before a reader gives up its rights, because it cannot open any later.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pypdfium2.raw as pdfium

_ROMAN = 16  # in the family of a font: it has serifs
_BOLD = 600
_SPACE = 0x20
_COLLECTION = int.from_bytes(b"ttcf", "big")
_kept: list[Any] = []  # Callbacks that PDFium may call as long as the process lives.


def install(fonts: Iterable[Sequence[Any]]) -> None:
    """Let PDFium use these fonts only: each is `[charset, is_serif, is_bold, path, offset]`."""
    opened: dict[str, mmap.mmap] = {}
    chosen: dict[tuple[int, bool, bool], int] = {}
    handles: list[tuple[mmap.mmap, int]] = []
    for charset, is_serif, is_bold, path, offset in fonts:
        try:
            if path not in opened:
                opened[path] = _map(path)
        except (OSError, ValueError):
            continue
        handles.append((opened[path], offset))
        chosen[charset, is_serif, is_bold] = len(handles)

    def find(_info: Any, weight: int, _italic: int, charset: int, family: int, *_: Any) -> Any:
        return chosen.get((charset, bool(family & _ROMAN), weight >= _BOLD))

    def read(_info: Any, handle: int, table: int, buffer: Any, size: int) -> int:
        data, offset = handles[handle - 1]
        if table == _COLLECTION:
            return _copy(data, 0, len(data), buffer, size) if offset else 0
        # PDFium computes the offset of a font in a collection from the difference of both sizes.
        return _copy(data, offset, len(data), buffer, size) if not table else 0

    _use({"EnumFonts": _nothing, "MapFont": find, "GetFont": _nothing, "GetFontData": read})


def _map(path: str) -> mmap.mmap:
    with Path(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _copy(data: mmap.mmap, start: int, end: int, buffer: Any, size: int) -> int:
    if buffer and size:
        part = data[start : min(end, start + size)]
        ctypes.memmove(buffer, part, len(part))
    return end - start


def _nothing(*_: Any) -> None:
    return None


def _use(callbacks: dict[str, Callable[..., Any]]) -> None:
    info = pdfium.FPDF_SYSFONTINFO(version=1)
    types = dict(pdfium.FPDF_SYSFONTINFO._fields_)
    for name, callback in callbacks.items():
        setattr(info, name, types[name](callback))
    _kept.append(info)
    pdfium.FPDF_SetSystemFontInfo(ctypes.byref(info))


def count_undrawn(text_page: Any, count: int) -> int:
    """Return how many of the first `count` characters of a page no font can draw: their font is
    neither embedded nor replaced by another."""
    known: dict[tuple[int, int], bool] = {}  # By font and character.
    font: Any = None
    last, is_carried = 0, True
    undrawn = 0
    for index in range(count):
        drawn = pdfium.FPDFText_GetTextObject(text_page, index)
        address = ctypes.addressof(drawn.contents) if drawn else 0
        if address != last:
            last, font = address, pdfium.FPDFTextObj_GetFont(drawn) if drawn else None
            is_carried = not font or pdfium.FPDFFont_GetIsEmbedded(font) != 0
        if is_carried:
            continue
        code = pdfium.FPDFText_GetUnicode(text_page, index)
        if code <= _SPACE or chr(code).isspace():
            continue
        key = ctypes.addressof(font.contents), code
        if key not in known:
            known[key] = not pdfium.FPDFFont_GetGlyphPath(font, code, 10.0)
        undrawn += known[key]
    return undrawn
