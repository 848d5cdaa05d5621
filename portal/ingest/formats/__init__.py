"""Extractors, one per file; a new format is a new file and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from portal.domain.documents import ExtractedText, MediaType
from portal.ingest.formats import (
    csv_table,
    docx,
    epub,
    html,
    image,
    mail,
    markdown,
    pdf,
    plain_text,
    pptx,
    xlsx,
)
from portal.ingest.limits import FileToRead


class Format(NamedTuple):
    """The extractor of a type of files. Increment `reader_version` when it reads better, so that
    files that were read before are read again."""

    extract: Callable[[FileToRead], ExtractedText]
    reader_version: int


FORMATS: Mapping[MediaType, Format] = MappingProxyType(
    {
        MediaType.PDF: Format(pdf.extract, reader_version=11),
        MediaType.TEXT: Format(plain_text.extract, reader_version=8),
        MediaType.MARKDOWN: Format(markdown.extract, reader_version=9),
        MediaType.HTML: Format(html.extract, reader_version=9),
        MediaType.DOCX: Format(docx.extract, reader_version=9),
        MediaType.XLSX: Format(xlsx.extract, reader_version=3),
        MediaType.CSV: Format(csv_table.extract, reader_version=3),
        MediaType.PPTX: Format(pptx.extract, reader_version=7),
        MediaType.EPUB: Format(epub.extract, reader_version=8),
        MediaType.EML: Format(mail.extract, reader_version=11),
        MediaType.PNG: Format(image.extract, reader_version=0),
        MediaType.JPEG: Format(image.extract, reader_version=0),
        MediaType.TIFF: Format(image.extract, reader_version=0),
    }
)
