"""Long-running reader of a file that returns its embedded images on demand.

Its input is the file, `size` bytes, and then commands, one JSON list per line:

    ["picture", "key of `image_keys`", 1400]    {"type": "image/png", "data": base64}
    ["size", "key of `image_keys`", 1400]       {"size": [1400, 900]}

First it yields `{"sizes": []}`, as `pages_reader` does. Each image is decoded and encoded again, at
most as wide as asked for. If it is missing or not a picture, `data` is empty and `size` zeros.
"""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from PIL import Image, ImageOps

from portal.ingest.readers.image_keys import hash_of, key_of

_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
_MAX_IMAGE_BYTES = 40 << 20
_MAX_SOURCE_PIXELS = 40_000_000
_MAX_HEIGHT = 8_000
_MAX_COLOURS = 256  # of drawings, which are sharper as PNG
_JPEG_QUALITY = 82
_MAX_PNG_SHARE = 1.5  # of the bytes of a JPEG
_ORIENTATION, _TURNED = 0x0112, 5  # Exif: from 5 on, width and height are exchanged.
_DATA = re.compile(rb"data:image/[\w.+-]{1,20}[\w=;.-]{0,60},[A-Za-z0-9+/=\s]{8,}", re.IGNORECASE)
_NONE = {"type": "", "data": ""}


def load(**_options: object) -> None:
    """Import the decoders, which register themselves."""
    from PIL import (  # noqa: F401
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )


def read(file: BinaryIO, *, size: int, **_options: object) -> Iterator[dict[str, Any]]:
    """Yield no sizes, then an answer to each command, until the input ends."""
    content = file.read(size)
    try:
        found = _parts(content) if content.startswith(b"PK") else _data(content)
    except (zipfile.BadZipFile, OSError):
        yield {"error": "broken"}
        return
    yield {"sizes": []}
    for line in file:
        command, key, width = json.loads(line)
        read_bytes = found.get(key, lambda: b"")
        if command == "size":
            yield {"size": _size(read_bytes, width)}
        else:
            yield _picture(read_bytes, width)


def _parts(content: bytes) -> dict[str, Callable[[], bytes]]:
    archive = zipfile.ZipFile(io.BytesIO(content))

    def opened(part: zipfile.ZipInfo) -> Callable[[], bytes]:
        return lambda: archive.read(part) if part.file_size <= _MAX_IMAGE_BYTES else b""

    return {hash_of(part.filename): opened(part) for part in archive.infolist()}


def _data(content: bytes) -> dict[str, Callable[[], bytes]]:
    def decoded(address: str) -> Callable[[], bytes]:
        return lambda: base64.b64decode(address.partition(",")[2])

    addresses = (match.group().decode("ascii") for match in _DATA.finditer(content))
    return {key: decoded(data_url) for data_url in addresses if (key := key_of(data_url))}


def _size(read_bytes: Callable[[], bytes], width: int) -> tuple[int, int]:
    """Return the size of the result of `_picture`, from the beginning of the image."""
    try:
        image = _open(read_bytes)
        size = image.size[::-1] if image.getexif().get(_ORIENTATION, 1) >= _TURNED else image.size
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any exception of a decoder means that it is no picture
        return 0, 0
    share = min(1, width / size[0], _MAX_HEIGHT / size[1])
    return round(size[0] * share), round(size[1] * share)


def _open(read_bytes: Callable[[], bytes]) -> Image.Image:
    image = Image.open(io.BytesIO(read_bytes()), formats=_FORMATS)
    if image.width * image.height > _MAX_SOURCE_PIXELS:
        raise ValueError("too large")
    return image


def _picture(read_bytes: Callable[[], bytes], width: int) -> dict[str, Any]:
    try:
        image = _open(read_bytes)
        image.draft("RGB", (width, _MAX_HEIGHT))
        image = ImageOps.exif_transpose(image)
        is_clear = image.has_transparency_data
        image = image.convert("RGBA" if is_clear else "RGB")
        image.thumbnail((width, _MAX_HEIGHT))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any exception of a decoder means that it is no picture
        return _NONE
    is_drawing = is_clear or image.getcolors(_MAX_COLOURS) is not None
    kind, data = "image/png", _encode(image, "PNG") if is_drawing else b""
    if not is_clear:
        photograph = _encode(image, "JPEG", quality=_JPEG_QUALITY)
        # The few colours may be the greys of a photograph.
        if not is_drawing or len(data) > _MAX_PNG_SHARE * len(photograph):
            kind, data = "image/jpeg", photograph
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def _encode(image: Image.Image, kind: str, **options: int) -> bytes:
    written = io.BytesIO()
    image.save(written, kind, **options)
    return written.getvalue()
