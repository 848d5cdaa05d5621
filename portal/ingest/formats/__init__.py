"""Extractors, one a file; a new format is a new file and a line in EXTRACTORS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from portal.domain.documents import ExtractedText, MediaType
from portal.ingest.formats.csv_table import extract as extract_csv
from portal.ingest.formats.docx import extract as extract_docx
from portal.ingest.formats.epub import extract as extract_epub
from portal.ingest.formats.html import extract as extract_html
from portal.ingest.formats.mail import extract as extract_mail
from portal.ingest.formats.markdown import extract as extract_markdown
from portal.ingest.formats.pdf import extract as extract_pdf
from portal.ingest.formats.plain_text import extract as extract_plain_text
from portal.ingest.formats.pptx import extract as extract_pptx
from portal.ingest.formats.xlsx import extract as extract_xlsx
from portal.ingest.limits import ExtractionLimits


class Extractor(Protocol):
    def __call__(
        self,
        path: Path,
        *,
        file_name: str,
        limits: ExtractionLimits,
        encoding: str | None = None,
    ) -> ExtractedText: ...


READER_VERSIONS: Mapping[MediaType, int] = MappingProxyType(
    {
        MediaType.PDF: 1,
        MediaType.TEXT: 0,
        MediaType.MARKDOWN: 1,
        MediaType.HTML: 1,
        MediaType.DOCX: 1,
        MediaType.XLSX: 1,
        MediaType.CSV: 1,
        MediaType.PPTX: 1,
        MediaType.EPUB: 1,
        MediaType.EML: 1,
    }
)
"""Raise a version when its format is read better: files read before are read again."""

EXTRACTORS: Mapping[MediaType, Extractor] = MappingProxyType(
    {
        MediaType.PDF: extract_pdf,
        MediaType.TEXT: extract_plain_text,
        MediaType.MARKDOWN: extract_markdown,
        MediaType.HTML: extract_html,
        MediaType.DOCX: extract_docx,
        MediaType.XLSX: extract_xlsx,
        MediaType.CSV: extract_csv,
        MediaType.PPTX: extract_pptx,
        MediaType.EPUB: extract_epub,
        MediaType.EML: extract_mail,
    }
)
