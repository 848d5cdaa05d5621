"""Reader of a Word document (DOCX) that yields a simple web page.

    {"html": "…", "has_formulas": false, "has_headers": true}

`has_headers` is true if headers or footers, which mammoth drops, have words that the text lacks.

mammoth converts styles by their meaning. The archive is checked first, for parts that unpack
without end or declare entities. mammoth opens nothing outside of the file, and no pictures.
"""

from __future__ import annotations

import re
import xml.dom.expatbuilder  # noqa: F401 - minidom imports it when it parses, which is too late
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import mammoth

from portal.ingest.readers import archives
from portal.ingest.readers.image_keys import address_of

_NO_TEXT_KEPT = "oMath"  # mammoth's name for formulas, which it leaves out.
_HEADER_PART = re.compile(r"word/(?:header|footer)\d*\.xml")
_MAX_HEADER_BYTES = 1 << 20
_PARAGRAPH_END = re.compile(r"</w:p>")
_TEXT = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>")
_WORDS = re.compile(r"[^\W\d_]{2}")
_PAGE_WORDS = re.compile(r"\b(?:page|of)\b|[第共页頁]", re.IGNORECASE)
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='标题 {level}'] => h{level}:fresh" for level in range(1, 7)),
        *(f"p[style-name='heading {level}'] => h6:fresh" for level in range(7, 10)),
        *(
            f"p[style-name='{name}'] => pre:separator('\\n')"
            for name in ("HTML Preformatted", "Preformatted Text", "Source Code", "Code")
        ),
        "comment-reference => sup",
    ]
)


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the one record, or an error: characters, or one of `archives.read_checked`."""
    return archives.read_checked(file, lambda: _page(file, characters))


def _page(file: BinaryIO, characters: int) -> Iterator[dict[str, Any]]:
    result = mammoth.convert_to_html(
        file,
        style_map=_STYLES,
        include_embedded_style_map=False,  # A style map in the file could hide its text.
        convert_image=mammoth.images.img_element(_image),
    )
    if len(result.value) > 4 * characters:  # Most of it is tags in the worst case.
        yield {"error": "characters"}
        return
    yield {
        "html": result.value,
        "has_formulas": any(_NO_TEXT_KEPT in message.message for message in result.messages),
        "has_headers": _has_headers(file, result.value),
    }


def _image(image: Any) -> dict[str, str]:
    """Return the attributes of an image: its key, without its bytes."""
    try:
        with image.open() as part:
            address = address_of(part.name)
    except (KeyError, OSError, AttributeError):
        address = ""  # It is missing, or not in the file.
    return {"alt": image.alt_text or "", "src": address}


def _has_headers(source: BinaryIO, html: str) -> bool:
    """Return whether a header or footer holds more than a page number and text of the document."""
    with zipfile.ZipFile(source) as archive:
        for part in archive.infolist():
            if not _HEADER_PART.fullmatch(part.filename):
                continue
            with archive.open(part) as file:
                xml = file.read(_MAX_HEADER_BYTES).decode("utf-8", "replace")
            for paragraph in _PARAGRAPH_END.split(xml):
                words = "".join(_TEXT.findall(paragraph)).strip()
                if _WORDS.search(_PAGE_WORDS.sub("", words)) and words not in html:
                    return True
    return False
