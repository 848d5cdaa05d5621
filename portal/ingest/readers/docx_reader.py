"""Reads one Word document (DOCX) and yields it as a simple web page.

    {"html": "…", "has_formulas": false, "has_headers": true}

`has_headers` tells of words in headers and footers, which mammoth leaves out, that the text lacks.

mammoth does that by the meaning of styles. What it is given is checked first: a part that
unpacks without end or declares entities is how such files attack. It opens nothing outside of
the file, and pictures are left closed.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import Any

import mammoth

_MOST_PARTS = 20_000
_MOST_XML_BYTES = 100 << 20  # unpacked; a thousand pages are about ten million.
_BLOCK_BYTES = 1 << 20
_NO_TEXT_KEPT = "oMath"  # Formulas, as mammoth names what it leaves out.
_HEADER_PART = re.compile(r"word/(?:header|footer)\d*\.xml")
_MOST_HEADER_BYTES = 1 << 20
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


def read(path: str, *, characters: int) -> Iterator[dict[str, Any]]:
    """The one record, or an error: broken, memory (it unpacks to too much), characters."""
    try:
        problem = _problem(path)
        if problem is not None:
            yield {"error": problem}
            return
        with open(path, "rb") as file:  # noqa: PTH123 - a reader imports little
            result = mammoth.convert_to_html(
                file,
                style_map=_STYLES,
                include_embedded_style_map=False,  # The file's own could hide what it says.
                convert_image=mammoth.images.img_element(lambda image: {"alt": image.alt_text}),
            )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever a hostile file makes a parser raise, it is broken
        yield {"error": "broken"}
        return
    if len(result.value) > 4 * characters:  # Tags are most of it at the worst.
        yield {"error": "characters"}
        return
    yield {
        "html": result.value,
        "has_formulas": any(_NO_TEXT_KEPT in message.message for message in result.messages),
        "has_headers": _has_headers(path, result.value),
    }


def _has_headers(path: str, html: str) -> bool:
    """Whether a header or a footer says more than which page it is, and more than the text."""
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if not _HEADER_PART.fullmatch(part.filename):
                continue
            with archive.open(part) as file:
                xml = file.read(_MOST_HEADER_BYTES).decode("utf-8", "replace")
            for paragraph in _PARAGRAPH_END.split(xml):
                words = "".join(_TEXT.findall(paragraph)).strip()
                if _WORDS.search(_PAGE_WORDS.sub("", words)) and words not in html:
                    return True
    return False


def _problem(path: str) -> str | None:
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        xml = [part for part in parts if part.filename.endswith((".xml", ".rels"))]
        # What a part says of its size holds: the rest would not be unpacked.
        if len(parts) > _MOST_PARTS or sum(part.file_size for part in xml) > _MOST_XML_BYTES:
            return "memory"
        return "broken" if any(_declares(archive, part) for part in xml) else None


def _declares(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Whether there is a document type, which the format forbids and entities need."""
    tail = b""
    with archive.open(part) as file:
        while block := file.read(_BLOCK_BYTES):
            # In UTF-16 every second byte is zero.
            seen = tail + block.replace(b"\0", b"")
            if b"<!DOCTYPE" in seen:
                return True
            tail = seen[-16:]
    return False
