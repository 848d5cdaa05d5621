"""Reader of scanned pages and pictures that recognises their text with the models of rapidocr.

    {"pages": 12}
    {"page": 3, "lines": [[text, left, right, baseline, size], …]}

in points and in reading order, as `pdf_reader` measures lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2
from PIL import Image, ImageOps

_PIXELS_PER_POINT = 2.5  # 180 dots per inch: smaller type than 6 points is rare.
_MAX_PIXELS = 4_000  # of one side; posters and photographs are shrunk to it.
_MAX_PICTURES = 500  # in one file

_engines: list[Any] = []


def load(**_options: object) -> None:
    """Load the models, which are otherwise loaded on first use."""
    import numpy as np
    from rapidocr import RapidOCR

    engine = RapidOCR(
        params={
            "Global.log_level": "critical",
            # One thread each: the time limit counts the time of all threads.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
    Image.init()  # Its plugins are imported before this process loses its rights.
    engine(np.full((48, 320, 3), 255, dtype=np.uint8), use_det=False)
    # The shorter side is enlarged to 736 pixels, so a narrow strip would take seconds.
    engine(np.full((736, 736, 3), 255, dtype=np.uint8), use_det=True)
    _engines.append(engine)


def read(file: BinaryIO, *, pages: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the number of pages to read, then one record for each; pages count from 1. These are
    `pages` of a PDF or, if there are none, all pages of a picture."""
    if pages:
        yield {"pages": len(pages)}
        pictures = _pdf_pages(file, pages)
    else:
        opened = Image.open(file)
        count = min(getattr(opened, "n_frames", 1), _MAX_PICTURES)
        yield {"pages": count}
        pictures = _frames(opened, count)
    (recognise,) = _engines
    for number, pixels, scale, height in pictures:
        yield {"page": number, "lines": list(_lines(recognise(pixels), scale, height))}


def _pdf_pages(file: BinaryIO, pages: list[int]) -> Iterator[tuple[int, Any, float, float]]:
    document = pypdfium2.PdfDocument(file)
    for number in pages:
        page = document[number - 1]
        width, height = page.get_size()
        scale = min(_PIXELS_PER_POINT, _MAX_PIXELS / max(width, height, 1.0))
        pixels = page.render(scale=scale, grayscale=True).to_numpy()
        page.close()
        yield number, pixels, scale, height


def _frames(opened: Image.Image, count: int) -> Iterator[tuple[int, Any, float, float]]:
    import numpy as np

    for number in range(1, count + 1):
        opened.seek(number - 1)
        picture = ImageOps.exif_transpose(opened)
        picture.thumbnail((_MAX_PIXELS, _MAX_PIXELS))
        yield number, np.asarray(picture.convert("RGB")), _PIXELS_PER_POINT, 0.0


def _lines(found: Any, scale: float, height: float) -> Iterator[list[Any]]:
    if found.boxes is None or found.txts is None:
        return
    for box, text in zip(found.boxes, found.txts, strict=True):
        left, right = float(box[:, 0].min()) / scale, float(box[:, 0].max()) / scale
        top, bottom = float(box[:, 1].min()) / scale, float(box[:, 1].max()) / scale
        yield [
            text,
            *(round(value, 1) for value in (left, right, height - bottom, bottom - top)),
        ]
