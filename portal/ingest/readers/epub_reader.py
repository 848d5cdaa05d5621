"""Reader of a book (EPUB) that yields its chapters as web pages, in reading order.

    {"html": "…"}

The package lists the chapters; no other part is opened. `archives` checks the archive first. Only
ZIP and XML are involved, so no library is needed.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from portal.ingest.readers import archives
from portal.ingest.readers.image_keys import address_of

_CONTAINER = "META-INF/container.xml"
_TYPES = frozenset({"application/xhtml+xml", "text/html"})
_LIMITS = archives.Limits(has_doctypes=True)
_MAX_HTML_MB = 100
_IMAGE = re.compile(
    r"""(<img\b[^<>]{0,2000}?\bsrc\s*=\s*)["']([^"'<>:]{1,500})["']""", re.IGNORECASE
)
# Chapters are only checked for size: they are read as browsers read them, not as XML.
_CHECKED = (".opf", "container.xml")


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the records, or an error: characters, or one of `archives.read_checked`."""
    return archives.read_checked(
        file, lambda: _chapters(zipfile.ZipFile(file), characters), _LIMITS, suffixes=_CHECKED
    )


def _chapters(archive: zipfile.ZipFile, characters: int) -> Iterator[dict[str, Any]]:
    package_name = _find(ET.fromstring(archive.read(_CONTAINER)), "rootfile").get("full-path", "")  # noqa: S314 - checked by `archives`
    package = ET.fromstring(archive.read(package_name))  # noqa: S314 - as above
    items = {
        element.get("id"): posixpath.normpath(
            posixpath.join(posixpath.dirname(package_name), unquote(element.get("href", "")))
        )
        for element in package.iter()
        if _name(element) == "item" and element.get("media-type") in _TYPES
    }
    order = [element.get("idref") for element in package.iter() if _name(element) == "itemref"]
    parts = [items[item] for item in dict.fromkeys(order) if item in items]
    if sum(archive.getinfo(part).file_size for part in parts) > _MAX_HTML_MB << 20:
        yield {"error": "memory", "limit_mb": _MAX_HTML_MB}
        return
    for part in parts:
        html = archive.read(part).decode("utf-8", "replace")
        characters -= len(html) // 4  # Most of it is tags in the worst case.
        if characters < 0:
            yield {"error": "characters"}
            return
        yield {"html": _with_keys(html, posixpath.dirname(part))}


def _with_keys(html: str, folder: str) -> str:
    """Return a chapter that names its images by their keys, not relative to its own folder."""

    def named(image: re.Match[str]) -> str:
        part = posixpath.normpath(posixpath.join(folder, unquote(image[2])))
        return f'{image[1]}"{address_of(part)}"'

    return _IMAGE.sub(named, html)


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _find(root: ET.Element, name: str) -> ET.Element:
    return next(element for element in root.iter() if _name(element) == name)
