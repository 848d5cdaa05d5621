"""Long-running reader of a PDF that returns pages on demand: sizes, characters, pictures.

Its input is the file, `size` bytes, and then commands, one JSON list per line:

    ["text", 12]            {"text": "…", "boxes": [left, top, right, bottom, …], "undrawn": 0}
    ["picture", 12, 1400]   {"type": "image/png", "data": base64}

First it yields `{"sizes": [[width, height], …]}` in points, or an error. Pages count from 1. Boxes
are tenths of a point from the upper left corner of the page as it is shown; line ends have zeros.
`undrawn` counts the characters that the picture lacks.
"""

from __future__ import annotations

import base64
import ctypes
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium

from portal.ingest.readers import page_fonts

MAX_PIXELS = 8_000_000
_MAX_SIDE = 8_000  # pixels
_MAX_CHARACTERS = 40_000  # of one page
_TENTHS = 10
_MAX_COLOURS = 256  # of a palette
# A page is a photograph if more than this share of its pixels is between dark and light.
_MIDDLE, _DARK, _LIGHT = 0.25, 40, 215
_JPEG_QUALITY = 82
_HIGH, _LOW, _END = 0xD800, 0xDC00, 0xE000  # Surrogate halves.
_HYPHEN = "\x02"


def load(*, fonts: list[list[Any]], **_options: object) -> None:
    """Import the encoder of photographs, and open `fonts`; later this process may do neither."""
    from PIL import Image, JpegImagePlugin  # noqa: F401 - a plugin that registers itself

    page_fonts.install(fonts)


def read(file: BinaryIO, *, size: int, pages: int, **_options: object) -> Iterator[dict[str, Any]]:
    """Yield the sizes, then an answer to each command, until the input ends."""
    try:
        document = pypdfium2.PdfDocument(file.read(size))
        count = len(document)
    except pypdfium2.PdfiumError as error:
        is_locked = error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}
        yield {"error": "encrypted" if is_locked else "broken"}
        return
    if not 0 < count <= pages:
        yield {"error": "pages" if count else "no_pages"}
        return
    yield {"sizes": [_size(document, index) for index in range(count)]}
    commands: dict[str, Callable[..., dict[str, Any]]] = {"text": _text, "picture": _picture}
    for line in file:
        name, number, *more = json.loads(line)
        try:
            page = document[number - 1]
        except pypdfium2.PdfiumError:
            yield {"error": "broken"}
            continue
        try:
            yield commands[name](page, *more)
        except (pypdfium2.PdfiumError, ValueError):
            yield {"error": "broken"}
        finally:
            page.close()


def _size(document: pypdfium2.PdfDocument, index: int) -> list[float]:
    size = pdfium.FS_SIZEF()
    if not pdfium.FPDF_GetPageSizeByIndexF(document.raw, index, size):
        return [0.0, 0.0]
    return [round(float(size.width), 1), round(float(size.height), 1)]


def _text(page: pypdfium2.PdfPage) -> dict[str, Any]:
    text_page = page.get_textpage()
    try:
        count = min(text_page.count_chars(), _MAX_CHARACTERS)
        characters, boxes = _characters(text_page.raw, count, _to_shown(page))
        undrawn = page_fonts.count_undrawn(text_page.raw, count)
    finally:
        text_page.close()
    return {"text": "".join(characters), "boxes": boxes, "undrawn": undrawn}


def _to_shown(page: pypdfium2.PdfPage) -> tuple[float, ...]:
    """Return the matrix from page coordinates to those of the page as shown, which may be turned
    and cropped."""
    width, height = page.get_size()
    wide, high = max(1, round(width * _TENTHS)), max(1, round(height * _TENTHS))

    def shown(x: float, y: float) -> tuple[int, int]:
        left, top = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, wide, high, 0, x, y, left, top)
        return left.value, top.value

    # Points that are far apart, because each is rounded.
    (ox, oy), (ax, ay), (bx, by) = shown(0, 0), shown(1000, 0), shown(0, 1000)
    return (ax - ox) / 1000, (bx - ox) / 1000, ox, (ay - oy) / 1000, (by - oy) / 1000, oy


def _characters(
    text_page: Any, count: int, matrix: tuple[float, ...]
) -> tuple[list[str], list[int]]:
    a, c, e, b, d, f = matrix
    characters: list[str] = []
    boxes: list[int] = []
    box = pdfium.FS_RECTF()
    high = 0
    for index in range(count):
        code = pdfium.FPDFText_GetUnicode(text_page, index)
        if _HIGH <= code < _LOW:
            high = code
            continue
        if _LOW <= code < _END:
            code = 0x10000 + ((high - _HIGH) << 10) + (code - _LOW) if high else 0xFFFD
        high = 0
        character = chr(code) if 0 < code <= 0x10FFFF else " "  # noqa: PLR2004 - of Unicode
        if character == "\r":
            continue
        characters.append("-" if character == _HYPHEN else character)
        if character == "\n" or not pdfium.FPDFText_GetLooseCharBox(text_page, index, box):
            boxes += (0, 0, 0, 0)
            continue
        xs = sorted((a * x + c * y + e) for x, y in _corners(box))
        ys = sorted((b * x + d * y + f) for x, y in _corners(box))
        boxes += (round(xs[0]), round(ys[0]), round(xs[1]), round(ys[1]))
    return characters, boxes


def _corners(box: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    return (box.left, box.bottom), (box.right, box.top)


def _picture(page: pypdfium2.PdfPage, width: int) -> dict[str, Any]:
    wide, high = (max(1.0, side) for side in page.get_size())
    scale = min(width / wide, _MAX_SIDE / max(wide, high), (MAX_PIXELS / (wide * high)) ** 0.5)
    bitmap = page.render(scale=scale, rev_byteorder=True, maybe_alpha=False)
    kind, data = encode(bitmap.to_numpy()[:, :, :3])
    bitmap.close()
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def encode(pixels: Any) -> tuple[str, bytes]:
    """Return the media type and bytes of a picture, (height, width, 3) of 8 bits. Black text gets
    16 levels of grey and coloured text a palette, which takes half the bytes of a format for
    photographs, and a fraction of the time."""
    red, green, blue = (np.ascontiguousarray(pixels[:, :, channel]) for channel in range(3))
    is_grey = np.array_equal(red, green) and np.array_equal(green, blue)
    tones = np.bincount(green[::2, ::2].ravel(), minlength=256)
    if tones[_DARK:_LIGHT].sum() > _MIDDLE * tones.sum():
        return _jpeg(green if is_grey else pixels)
    if is_grey:
        levels = green >> 4
        if levels.shape[1] % 2:
            levels = np.pad(levels, ((0, 0), (0, 1)))
        return "image/png", _png(levels[:, ::2] << 4 | levels[:, 1::2], pixels.shape, 4, 0)
    codes = (red >> 4).astype(np.uint16) << 8 | green & 0xF0 | blue >> 4
    used = np.flatnonzero(np.bincount(codes.ravel(), minlength=4096))
    if len(used) > _MAX_COLOURS:
        return _jpeg(pixels)
    places = np.zeros(4096, np.uint8)
    places[used] = np.arange(len(used))
    palette = np.stack((used >> 8, used >> 4 & 15, used & 15), axis=1).astype(np.uint8) * 17
    return "image/png", _png(places[codes], pixels.shape, 8, 3, palette.tobytes())


def _jpeg(pixels: Any) -> tuple[str, bytes]:
    from PIL import Image

    written = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(written, "JPEG", quality=_JPEG_QUALITY)
    return "image/jpeg", written.getvalue()


def _png(rows: Any, shape: tuple[int, ...], depth: int, kind: int, palette: bytes = b"") -> bytes:
    height, width = shape[:2]
    unfiltered = np.zeros((height, rows.shape[1] + 1), np.uint8)
    unfiltered[:, 1:] = rows
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))]
    parts += [(b"PLTE", palette)] if palette else []
    parts += [(b"IDAT", zlib.compress(unfiltered.tobytes(), 4)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
