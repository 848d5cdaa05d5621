"""PPTX: each slide as a page, with its title and notes, converted through HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path

from portal.domain.documents import ExtractedText, Page
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import ExtractionLimits
from portal.ingest.reader_process import read_records

EXTRACTOR = "python-pptx"

HIDDEN_LEFT_OUT = N_("hidden slides were skipped")


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    encoding: str | None = None,  # noqa: ARG001 - every extractor takes it; this one knows its own
) -> ExtractedText:
    """Return titles as headings, lists, tables and notes; a slide's number is its page.

    Raises EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge.
    """
    pages, numbers, title, has_hidden = [], [], "", False
    for record in read_records(
        "pptx_reader",
        path,
        file_name=file_name,
        limits=limits,
        options={"characters": limits.max_characters},
    ):
        if "slide" in record:
            numbers.append(record["slide"])
            pages.append(_page(record["title"], record["html"], record["notes"]))
        else:
            title, has_hidden = record["title"], record["has_hidden"]
    read = read_html(
        "<html><body>" + "".join(pages), folder=path.parent, file_name=file_name, limits=limits
    )
    return ExtractedText(
        text=read.text,
        extractor=EXTRACTOR,
        pages=tuple(
            Page(number, start, end)
            for number, (start, end) in zip(numbers, read.sections, strict=True)
        ),
        headings=read.headings,
        blocks=read.blocks,
        title=title.strip() or read.title,
        warnings=(*read.warnings, *([HIDDEN_LEFT_OUT] if has_hidden else [])),
    )


def _page(title: str, html: str, notes: str) -> str:
    heading = f"<h1>{escape(title)}</h1>" if title.strip() else ""
    lines = "".join(f"<p>{escape(line)}</p>" for line in notes.splitlines() if line.strip())
    return f"<portal-section>{heading}{html}{lines}</portal-section>"
