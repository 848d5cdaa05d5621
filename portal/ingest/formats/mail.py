"""EML: an e-mail with its subject, sender, recipients and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.formats.texts.spaced_tables import find_tables
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

EXTRACTOR = "email"

_QUOTED = re.compile(r"^(?:> ?)+")
ATTACHMENTS_LEFT_OUT = N_("attachments were skipped")


def extract(file: FileToRead) -> ExtractedText:
    """Return the subject as a heading, sender, recipients, date, text and attachment names. Raises
    EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge."""
    (record,) = read_records("mail_reader", file, characters=file.limits.max_characters)
    (_, subject), *headers = record["headers"]
    head = "<br>".join(f"{name}: {escape(value)}" for name, value in headers if value)
    body = record["html"] or "".join(map(_html, _blocks(record["text"])))
    names = [escape(name) for name in record["attachments"]]
    # Before the text, because a page may end without closing its elements.
    attached = f"<p>Attachments: {', '.join(names)}</p>" if names else ""
    heading = f"<h1>{escape(subject)}</h1>" if subject else ""
    read = read_html(f"<html><body>{heading}<p>{head}</p>{attached}<div>{body}", file)
    return replace(
        read,
        extractor=EXTRACTOR,
        warnings=(*read.warnings, *([ATTACHMENTS_LEFT_OUT] if names else [])),
    )


def _html(block: str) -> str:
    """Return a paragraph as HTML, with the table that its lines may draw."""
    lines = block.split("\n")
    html, done = "", 0
    for first, end, rows in find_tables(lines):
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        html += f"{_paragraph(lines[done:first])}<table>{table}</table>"
        done = end
    return html + _paragraph(lines[done:])


def _paragraph(lines: Sequence[str]) -> str:
    return f"<p>{'<br>'.join(map(escape, lines))}</p>"


def _blocks(text: str) -> list[str]:
    """Return the paragraphs of a text, without the marks of lines that are quoted."""
    lines = "\n".join(_QUOTED.sub("", line).rstrip() for line in text.splitlines())
    return [block.strip("\n") for block in lines.split("\n\n") if block.strip()]
