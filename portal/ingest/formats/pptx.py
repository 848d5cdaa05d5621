"""PPTX: each slide as a page, with its title and notes, converted through HTML."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from portal.domain.documents import ExtractedText, Page
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records
from portal.text.characters.scripts import HAN_RUN

EXTRACTOR = "python-pptx"

HIDDEN_LEFT_OUT = N_("hidden slides were skipped")


def extract(file: FileToRead) -> ExtractedText:
    """Return titles as headings, lists, tables and notes; a slide's number is its page. Raises
    EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge."""
    pages, numbers, has_hidden = [], [], False
    for record in read_records("pptx_reader", file, characters=file.limits.max_characters):
        if "slide" in record:
            numbers.append(record["slide"])
            pages.append(_page(record["title"], record["html"], record["notes"]))
        else:
            has_hidden = record["has_hidden"]
    read = read_html("<html><body>" + "".join(pages), file)
    return replace(
        read,
        extractor=EXTRACTOR,
        pages=tuple(
            Page(number, start, end)
            for number, (start, end) in zip(numbers, read.sections, strict=True)
        ),
        warnings=(*read.warnings, *([HIDDEN_LEFT_OUT] if has_hidden else [])),
    )


def _page(title: str, html: str, notes: str) -> str:
    heading = f"<h1>{escape(title)}</h1>" if title.strip() else ""
    lines = [line for line in notes.splitlines() if line.strip()]
    if lines:
        # As PowerPoint labels them, in the language of the notes.
        lines.insert(0, "备注：" if HAN_RUN.search(notes) else "Notes:")
    shown = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<portal-section>{heading}{html}{shown}</portal-section>"
