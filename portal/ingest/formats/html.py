"""HTML: the text that a browser shows, read by Lexbor in a limited process."""

from __future__ import annotations

import codecs
import re
import sys
from dataclasses import dataclass, replace
from typing import Any

from portal.domain.documents import ExtractedText
from portal.errors import N_, EmptyFile
from portal.ingest.decoding import DecodedText, decode, decode_strictly, known_encoding
from portal.ingest.formats.plain_text import with_line_feeds
from portal.ingest.formats.texts.html_text import HtmlText
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_text_records

EXTRACTOR = "selectolax"

# The max events of a page in the worker's memory: about 150 MB.
_MAX_EVENTS = 2_000_000
NESTED_TOO_DEEP = N_(
    "nested too deeply: the innermost parts were read without headings, lists and tables"
)
_DECLARED_WITHIN = 1024  # A declaration counts only within these first bytes, as in browsers.
_DECLARED = re.compile(
    rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]{1,40})"""
    rb"""|\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
# Texts declared as these use vendor extensions too, so they are read as browsers read them.
_ACTUAL_ENCODINGS = {
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-1": "cp1252",
}


@dataclass(frozen=True, slots=True)
class PageText(ExtractedText):
    """The text of a page; `sections` are the ranges of its elements `portal-section`."""

    sections: tuple[tuple[int, int], ...] = ()


def extract(file: FileToRead) -> ExtractedText:
    """Return the visible text of the page: headings, lists, tables by line, code as written.

    Scripts, styles and hidden parts are left out. The encoding is that of a byte order mark or a
    declaration if the whole file is valid in it, else the detected one. Raises EmptyFile,
    UndecodableText, BrokenFile, ExtractionTimedOut and ExtractionTooLarge.
    """
    decoded = _decoded(file.path.read_bytes(), file.name, file.encoding)
    read = read_html(decoded.text, file)
    return replace(read, encoding=decoded.encoding, warnings=(*decoded.warnings, *read.warnings))


def read_html(html: str, file: FileToRead) -> PageText:
    """Return the text of a decoded page that was found in a file. Raises as `extract` does."""
    is_flattened = False
    events: list[tuple[str, Any]] = []
    for record in read_text_records(
        "html_reader",
        with_line_feeds(html),
        file,
        characters=file.limits.max_characters,
        events=_MAX_EVENTS,
    ):
        is_flattened = record.get("is_flattened", is_flattened)
        # There are about twenty kinds and millions of events, so each kind is stored once.
        events += ((sys.intern(kind), value) for kind, value in record.get("events", ()))
    writer = HtmlText()
    writer.add_events(events)
    text = writer.readable.text()
    if not text.strip():
        raise EmptyFile(name=file.name)
    headings = tuple(writer.readable.headings)
    return PageText(
        text=text,
        extractor=EXTRACTOR,
        sections=tuple(writer.sections),
        headings=headings,
        blocks=writer.readable.all_blocks,
        warnings=(NESTED_TOO_DEEP,) if is_flattened else (),
    )


def _decoded(data: bytes, file_name: str, encoding: str | None) -> DecodedText:
    declared = None if encoding else _find_declared(data)
    decoded = decode_strictly(declared, data) if declared else None
    # If the declaration is wrong, detect the encoding from the bytes.
    return decoded or decode(data, file_name=file_name, encoding=encoding)


def _find_declared(data: bytes) -> str | None:
    """Return the declared encoding of a page; None if a byte order mark overrides it."""
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    match = _DECLARED.search(data[:_DECLARED_WITHIN])
    if match is None:
        return None
    name = known_encoding((match[1] or match[2]).decode("ascii"))
    # A declaration that is readable byte by byte cannot be in UTF-16.
    return None if name is None or name.startswith("utf-16") else _ACTUAL_ENCODINGS.get(name, name)
