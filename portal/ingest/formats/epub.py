"""EPUB: the chapters of a book in reading order, each read as a web page."""

from __future__ import annotations

import re
from dataclasses import replace

from portal.domain.documents import ExtractedText
from portal.ingest.formats.html import read_html
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

EXTRACTOR = "epub"

# Tags around the body, which would end the page that the chapters are joined into.
_AROUND_BODY = re.compile(
    r"\A.*?<body\b[^>]*>|</body\s*>.*\Z|<\?xml[^>]*\?>|<!doctype[^>]*>", re.IGNORECASE | re.DOTALL
)


def extract(file: FileToRead) -> ExtractedText:
    """Return headings, lists, tables and notes of each chapter. Raises EmptyFile, BrokenFile,
    ExtractionTimedOut and ExtractionTooLarge."""
    records = read_records("epub_reader", file, characters=file.limits.max_characters)
    chapters = (f"<div>{_AROUND_BODY.sub('', record['html'])}</div>" for record in records)
    read = read_html("<html><body>" + "".join(chapters), file)
    return replace(read, extractor=EXTRACTOR)
