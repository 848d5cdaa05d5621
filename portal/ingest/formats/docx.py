"""DOCX: the text that Word shows, converted through HTML."""

from __future__ import annotations

from dataclasses import replace

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

EXTRACTOR = "mammoth"

FORMULAS_LEFT_OUT = N_("formulas were skipped")
HEADERS_LEFT_OUT = N_("headers and footers were skipped")
_LEFT_OUT = {"has_formulas": FORMULAS_LEFT_OUT, "has_headers": HEADERS_LEFT_OUT}


def extract(file: FileToRead) -> ExtractedText:
    """Return headings by style, numbered lists, tables by line, notes at the end of sections.
    Raises EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge."""
    (record,) = read_records("docx_reader", file, characters=file.limits.max_characters)
    extracted = read_html(record["html"], file)
    left_out = [words for name, words in _LEFT_OUT.items() if record[name]]
    return replace(extracted, extractor=EXTRACTOR, warnings=(*extracted.warnings, *left_out))
