"""EML: an e-mail with its subject, sender, recipients and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

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
    """Return the subject as a heading, sender, recipients, date, text and attachment names; then
    the same of attached e-mails. Raises EmptyFile, BrokenFile, ExtractionTimedOut, TooMuchInOne and
    ExtractionTooLarge."""
    records = list(read_records("mail_reader", file, characters=file.limits.max_characters))
    mails = (_mail(record, 2 if place else 1) for place, record in enumerate(records))
    read = read_html("<html><body>" + "".join(mails), file)
    has_attachments = any(record["attachments"] for record in records)
    return replace(
        read,
        extractor=EXTRACTOR,
        warnings=(*read.warnings, *([ATTACHMENTS_LEFT_OUT] if has_attachments else [])),
    )


def _mail(record: dict[str, Any], level: int) -> str:
    """Return an e-mail as HTML, its subject as a heading of this level."""
    (_, subject), *headers = record["headers"]
    heading = f"<h{level}>{escape(subject)}</h{level}>" if subject else ""
    head = "<br>".join(f"{name}: {escape(value)}" for name, value in headers if value)
    names = [escape(name) for name in record["attachments"]]
    # Before the text, because a page may end without closing its elements.
    attached = f"<p>Attachments: {', '.join(names)}</p>" if names else ""
    body = "".join(
        text if kind == "text/html" else "".join(map(_html, _blocks(text)))
        for kind, text in record["bodies"]
    )
    return f"{heading}<p>{head}</p>{attached}<div>{body}</div>"


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
