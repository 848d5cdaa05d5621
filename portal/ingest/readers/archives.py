"""Safety checks of XML archives (DOCX, XLSX, PPTX, EPUB) before a parser reads them.

Parts that unpack or nest without end, or declare entities, are the usual attacks on such parsers.
Every part is streamed once, and none of it is kept.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO
from xml.parsers import expat

_MAX_PARTS = 20_000
_MAX_DEPTH = 200
_MAX_ATTRIBUTES = 1_000
# For longer paragraphs a DOM, or its reader, takes minutes.
_MAX_PARAGRAPH_CHARACTERS = 1_000_000
_PARAGRAPHS = frozenset({"p", "si", "c", "div", "li", "td", "th", "dt", "dd"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on all parts together: `xml_mb` unpacked, and `elements`. With `has_doctypes` a part
    may name its document type, as XHTML does, but not declare anything."""

    xml_mb: int = 100  # A thousand pages are about ten.
    elements: int = 2_000_000
    has_doctypes: bool = False


XML_SUFFIXES = (".xml", ".rels")
OnElement = Callable[[str, str, dict[str, str]], None]


def find_problem(
    source: BinaryIO,
    limits: Limits = Limits(),
    *,
    suffixes: tuple[str, ...] = XML_SUFFIXES,
    on_element: OnElement | None = None,
) -> dict[str, Any] | None:
    """Return the error record for an archive; None for a sound one. `on_element` is called with the
    part, the name and the attributes of each element. Raises BadZipFile and ExpatError."""
    with zipfile.ZipFile(source) as archive:
        parts = archive.infolist()
        if len(parts) > _MAX_PARTS:
            return too_many("parts", _MAX_PARTS)
        xml = [part for part in parts if part.filename.lower().endswith(suffixes)]
        # A part cannot exceed its declared size: the rest would not be unpacked.
        if sum(part.file_size for part in xml) > limits.xml_mb << 20:
            return {"error": "memory", "limit_mb": limits.xml_mb}
        check = _XmlCheck(limits, on_element)
        try:
            for part in xml:
                with archive.open(part) as file:
                    check.read(part.filename, file)
        except _Refused as refused:
            return refused.record
    return None


def read_checked(
    source: BinaryIO,
    read: Callable[[], Iterable[dict[str, Any]]],
    limits: Limits = Limits(),
    *,
    suffixes: tuple[str, ...] = XML_SUFFIXES,
    on_element: OnElement | None = None,
) -> Iterator[dict[str, Any]]:
    """Check an archive, then yield what `read` finds in it, or an error: broken, memory, too_many.
    `memory` means that the archive unpacks to too much."""
    try:
        problem = find_problem(source, limits, suffixes=suffixes, on_element=on_element)
        yield from read() if problem is None else [problem]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any exception of a parser means that the file is broken
        yield {"error": "broken"}


def too_many(what: str, limit: int) -> dict[str, Any]:
    """Return the error record for a count; `what` is a key of `reader_process.COUNTED`."""
    return {"error": "too_many", "what": what, "limit": limit}


class _Refused(Exception):
    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record


class _XmlCheck:
    def __init__(self, limits: Limits, on_element: OnElement | None) -> None:
        self._limits = limits
        self._on_element = on_element
        self._elements = self._depth = self._paragraph_characters = 0
        self._part = ""

    def read(self, part: str, file: IO[bytes]) -> None:
        """Check one part. Raises _Refused if it exceeds a limit, ExpatError if it is not XML."""
        self._part, self._depth, self._paragraph_characters = part, 0, 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        if not self._limits.has_doctypes:
            parser.StartDoctypeDeclHandler = self._refuse_declaration
        parser.EntityDeclHandler = self._refuse_declaration
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.ParseFile(file)

    def _refuse_declaration(self, *_declaration: object) -> None:
        # Office formats forbid document types, and entities need them.
        raise _Refused({"error": "broken"})

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        self._depth += 1
        if self._elements > self._limits.elements:
            raise _Refused(too_many("elements", self._limits.elements))
        if self._depth > _MAX_DEPTH:
            raise _Refused(too_many("depth", _MAX_DEPTH))
        if len(attributes) > _MAX_ATTRIBUTES:
            raise _Refused(too_many("attributes", _MAX_ATTRIBUTES))
        if name.rpartition(":")[2] in _PARAGRAPHS:
            self._paragraph_characters = 0
        if self._on_element is not None:
            self._on_element(self._part, name, attributes)

    def _end(self, _name: str) -> None:
        self._depth -= 1

    def _add_text(self, text: str) -> None:
        self._paragraph_characters += len(text)
        if self._paragraph_characters > _MAX_PARAGRAPH_CHARACTERS:
            raise _Refused(too_many("paragraph", _MAX_PARAGRAPH_CHARACTERS))
