"""HTML: what a browser would show of it, read by Lexbor in a limited process."""

from __future__ import annotations

import codecs
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.domain.documents import ExtractedText
from portal.errors import N_, EmptyFile
from portal.ingest.decoding import DecodedText, decode, known_encoding, strictly
from portal.ingest.formats.html_text import HtmlText
from portal.ingest.formats.plain_text import with_line_feeds
from portal.ingest.formats.readable_text import one_line
from portal.ingest.limits import ExtractionLimits
from portal.ingest.reader_process import read_text_records

EXTRACTOR = "selectolax"

# Of what the worker holds of a page at once: some 150 MB.
_MAX_EVENTS = 2_000_000
NESTED_TOO_DEEP = N_(
    "nested too deeply: the innermost parts were read without headings, lists and tables"
)
_DECLARED_WITHIN = 1024  # Bytes in which a declaration counts, as browsers have it.
_DECLARED = re.compile(
    rb"""<meta[^>]{0,400}?charset\s*=\s*["']?\s*([\w.:-]{1,40})"""
    rb"""|\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
# The vendors' additions are in such texts too, whatever their authors declare; as browsers do.
_MEANT = {"big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949", "iso8859-1": "cp1252"}


@dataclass(frozen=True, slots=True)
class PageText(ExtractedText):
    """`sections` are the ranges of its elements `portal-section`."""

    sections: tuple[tuple[int, int], ...] = ()


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    encoding: str | None = None,
) -> ExtractedText:
    """What is seen of the page: headings, lists, tables by line, code as written; no scripts,
    styles and hidden parts. The encoding is that of a mark or a declaration if all of the file
    can be read in it, else the recognised one.

    Raises EmptyFile, UndecodableText, BrokenFile, ExtractionTimedOut and ExtractionTooLarge.
    """
    data = path.read_bytes()
    decoded = _decoded(data, file_name, encoding)
    read = read_html(decoded.text, folder=path.parent, file_name=file_name, limits=limits)
    return ExtractedText(
        text=read.text,
        extractor=EXTRACTOR,
        headings=read.headings,
        blocks=read.blocks,
        encoding=decoded.encoding,
        title=read.title,
        warnings=(*decoded.warnings, *read.warnings),
    )


def read_html(html: str, *, folder: Path, file_name: str, limits: ExtractionLimits) -> PageText:
    """The text of a page that is characters already; it lies in `folder` while it is read.

    Raises as `extract` does.
    """
    page_title, is_flattened = "", False
    events: list[tuple[str, Any]] = []
    for record in read_text_records(
        "html_reader",
        with_line_feeds(html),
        folder=folder,
        file_name=file_name,
        limits=limits,
        options={"characters": limits.max_characters, "events": _MAX_EVENTS},
    ):
        page_title = record.get("title", page_title)
        is_flattened = record.get("is_flattened", is_flattened)
        # There are a score of kinds, and millions of events: each kind is held once.
        events += ((sys.intern(kind), value) for kind, value in record.get("events", ()))
    writer = HtmlText()
    writer.add_events(events)
    text = writer.readable.text()
    if not text.strip():
        raise EmptyFile(name=file_name)
    headings = tuple(writer.readable.headings)
    title = one_line(page_title) or (headings[0].title if headings else "")
    return PageText(
        text=text,
        extractor=EXTRACTOR,
        sections=tuple(writer.sections),
        headings=headings,
        blocks=tuple(writer.readable.blocks),
        title=title or None,
        warnings=(NESTED_TOO_DEEP,) if is_flattened else (),
    )


def _decoded(data: bytes, file_name: str, encoding: str | None) -> DecodedText:
    declared = None if encoding else _declared(data)
    decoded = strictly(declared, data) if declared else None
    # Of a page that says what it is not, its bytes know better.
    return decoded or decode(data, file_name=file_name, encoding=encoding)


def _declared(data: bytes) -> str | None:
    """The encoding that the page says it is in, None where a byte order mark says more."""
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    match = _DECLARED.search(data[:_DECLARED_WITHIN])
    if match is None:
        return None
    name = known_encoding((match[1] or match[2]).decode("ascii"))
    # A declaration that could be read byte by byte is none of UTF-16.
    return None if name is None or name.startswith("utf-16") else _MEANT.get(name, name)
