"""Pictures of text, such as scans and photographs: read by text recognition."""

from __future__ import annotations

from portal.domain.documents import ExtractedText, Page
from portal.errors import N_, NoTextInPicture
from portal.ingest.formats.pages import page_recognition
from portal.ingest.formats.pages.page_layout import paragraphs
from portal.ingest.formats.pdf import join_pages, page_lines
from portal.ingest.limits import FileToRead

EXTRACTOR = "rapidocr"
_TRY_AGAIN = N_("Take a sharper picture, or upload the text itself.")


def extract(file: FileToRead) -> ExtractedText:
    """Return the text by paragraphs; a TIFF file may have several pages. Raises NoTextInPicture,
    also if the extra `ocr` is missing or recognition ran out of time."""
    recognised = page_recognition.read_picture(file)
    last = max(recognised.lines, default=0)
    pages = [
        paragraphs(page_lines(recognised.lines.get(number, ()))) for number in range(1, last + 1)
    ]
    if not any(pages):
        installed = page_recognition.is_installed()
        advice = _TRY_AGAIN if installed else page_recognition.NOT_INSTALLED
        raise NoTextInPicture(name=file.name, advice=recognised.reason or advice)
    text, ranges = join_pages(pages)
    return ExtractedText(
        text=text,
        extractor=EXTRACTOR,
        pages=tuple(Page(number, start, end) for number, (start, end) in enumerate(ranges, 1)),
    )
