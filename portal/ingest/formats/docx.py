"""DOCX: the text that Word shows, converted through HTML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import ExtractionLimits
from portal.ingest.reader_process import read_records

EXTRACTOR = "mammoth"

FORMULAS_LEFT_OUT = N_("formulas were skipped")
HEADERS_LEFT_OUT = N_("headers and footers were skipped")
_LEFT_OUT = {"has_formulas": FORMULAS_LEFT_OUT, "has_headers": HEADERS_LEFT_OUT}


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    encoding: str | None = None,  # noqa: ARG001 - every extractor takes it; this one knows its own
) -> ExtractedText:
    """Return headings by style, numbered lists, tables by line, notes at the end.

    Raises EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge.
    """
    (record,) = read_records(
        "docx_reader",
        path,
        file_name=file_name,
        limits=limits,
        options={"characters": limits.max_characters},
    )
    extracted = read_html(record["html"], folder=path.parent, file_name=file_name, limits=limits)
    left_out = [words for name, words in _LEFT_OUT.items() if record[name]]
    return replace(extracted, extractor=EXTRACTOR, warnings=(*extracted.warnings, *left_out))
