"""Plain text: its characters as they are, with the headings and tables that its lines show."""

from __future__ import annotations

import re
from dataclasses import replace

from portal.domain.documents import ExtractedText
from portal.errors import EmptyFile
from portal.ingest.decoding import DecodedText, decode
from portal.ingest.formats.texts.spaced_tables import with_tables
from portal.ingest.formats.texts.text_outline import text_headings
from portal.ingest.limits import FileToRead

EXTRACTOR = "text"

_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\u0085]")


def extract(file: FileToRead) -> ExtractedText:
    """Return the text with line feeds as line ends, and with bars in tables that it draws with
    spaces. A chosen encoding overrides the detection. Raises EmptyFile and UndecodableText."""
    read = read_text(file)
    text, tables = with_tables(read.text)
    return ExtractedText(
        text=text,
        extractor=EXTRACTOR,
        headings=text_headings(text),
        blocks=tables,
        encoding=read.encoding,
        warnings=read.warnings,
    )


def read_text(file: FileToRead) -> DecodedText:
    """Return the text with line feeds as line ends. Raises EmptyFile and UndecodableText."""
    decoded = decode(file.path.read_bytes(), file_name=file.name, encoding=file.encoding)
    text = with_line_feeds(decoded.text)
    if not text.strip():
        raise EmptyFile(name=file.name)
    return replace(decoded, text=text)


def with_line_feeds(text: str) -> str:
    """Replace all line ends with line feeds."""
    return _LINE_ENDS.sub("\n", text)
