"""EML: an e-mail with its subject, sender, recipients and text."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

EXTRACTOR = "email"

ATTACHMENTS_LEFT_OUT = N_("attachments were skipped")


def extract(file: FileToRead) -> ExtractedText:
    """Return the subject as a heading, sender, recipients, date, text and attachment names. Raises
    EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge."""
    (record,) = read_records("mail_reader", file, characters=file.limits.max_characters)
    (_, subject), *headers = record["headers"]
    head = "<br>".join(f"{name}: {escape(value)}" for name, value in headers if value)
    body = record["html"] or "".join(
        f"<p>{escape(block)}</p>".replace("\n", "<br>") for block in _blocks(record["text"])
    )
    names = [escape(name) for name in record["attachments"]]
    # Before the text, because a page may end without closing its elements.
    attached = f"<p>Attachments: {', '.join(names)}</p>" if names else ""
    heading = f"<h1>{escape(subject)}</h1>" if subject else ""
    read = read_html(f"<html><body>{heading}<p>{head}</p>{attached}<div>{body}", file)
    return replace(
        read,
        extractor=EXTRACTOR,
        title=subject or None,
        warnings=(*read.warnings, *([ATTACHMENTS_LEFT_OUT] if names else [])),
    )


def _blocks(text: str) -> list[str]:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return [block.strip("\n") for block in lines.split("\n\n") if block.strip()]
