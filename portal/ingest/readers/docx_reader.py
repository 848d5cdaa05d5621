"""Reads one Word document (DOCX) and yields it as a simple web page.

    {"html": "…", "has_formulas": false, "has_headers": true}

`has_headers` tells of words in headers and footers, which mammoth leaves out, that the text lacks.

mammoth does that by the meaning of styles. What it is given is checked first: a part that
unpacks without end or declares entities is how such files attack. It opens nothing outside of
the file, and pictures are left closed.
"""

from __future__ import annotations

import re
import xml.dom.expatbuilder  # noqa: F401 - minidom imports it when it parses, which is too late
import zipfile
from collections.abc import Iterator
from typing import IO, Any, BinaryIO
from xml.parsers import expat

import mammoth

_MAX_PARTS = 20_000
_MAX_XML_MB = 100  # unpacked; a thousand pages are about ten.
# What takes mammoth, and the DOM it builds, minutes or all of their stack.
_MAX_PARAGRAPH_CHARACTERS = 1_000_000
_MAX_ELEMENTS = 2_000_000
_MAX_DEPTH = 200
_MAX_ATTRIBUTES = 1_000
_NO_TEXT_KEPT = "oMath"  # Formulas, as mammoth names what it leaves out.
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
    """The one record, or an error: broken, memory (it unpacks to too much), too_many,
    characters."""
    try:
        problem = _problem(file)
        if problem is not None:
            yield problem
            return
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
        "has_headers": _has_headers(file, result.value),
    }


def _has_headers(source: BinaryIO, html: str) -> bool:
    """Whether a header or a footer says more than which page it is, and more than the text."""
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


def _problem(source: BinaryIO) -> dict[str, Any] | None:
    with zipfile.ZipFile(source) as archive:
        parts = archive.infolist()
        if len(parts) > _MAX_PARTS:
            return _too_many("parts", _MAX_PARTS)
        xml = [part for part in parts if part.filename.endswith((".xml", ".rels"))]
        # What a part says of its size holds: the rest would not be unpacked.
        if sum(part.file_size for part in xml) > _MAX_XML_MB << 20:
            return {"error": "memory", "limit_mb": _MAX_XML_MB}
        try:
            for part in xml:
                with archive.open(part) as file:
                    _XmlCheck().read(file)
        except _Refused as refused:
            return refused.record
    return None


def _too_many(what: str, limit: int) -> dict[str, Any]:
    return {"error": "too_many", "what": what, "limit": limit}


class _Refused(Exception):
    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record


class _XmlCheck:
    """Goes through one part without keeping any of it."""

    def __init__(self) -> None:
        self._elements = self._depth = self._paragraph_characters = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_document_type
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text

    def read(self, file: IO[bytes]) -> None:
        """Raises _Refused for what is too much, ExpatError for what is no XML."""
        self._parser.ParseFile(file)

    def _refuse_document_type(self, *_declaration: object) -> None:
        # The format forbids it, and entities need it.
        raise _Refused({"error": "broken"})

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        if self._elements > _MAX_ELEMENTS:
            raise _Refused(_too_many("elements", _MAX_ELEMENTS))
        if self._depth > _MAX_DEPTH:
            raise _Refused(_too_many("depth", _MAX_DEPTH))
        if len(attributes) > _MAX_ATTRIBUTES:
            raise _Refused(_too_many("attributes", _MAX_ATTRIBUTES))
        if name.endswith(":p"):
            self._paragraph_characters = 0

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _add_text(self, text: str) -> None:
        self._paragraph_characters += len(text)
        if self._paragraph_characters > _MAX_PARAGRAPH_CHARACTERS:
            raise _Refused(_too_many("paragraph", _MAX_PARAGRAPH_CHARACTERS))
