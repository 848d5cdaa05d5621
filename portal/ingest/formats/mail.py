"""EML: an e-mail with its subject, sender, recipients and text."""

from __future__ import annotations

from html import escape
from pathlib import Path

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.limits import ExtractionLimits
from portal.ingest.reader_process import read_records

EXTRACTOR = "email"

ATTACHMENTS_LEFT_OUT = N_("attachments were skipped")


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    encoding: str | None = None,  # noqa: ARG001 - every extractor takes it; a message says its own
) -> ExtractedText:
    """Return the subject as a heading, sender, recipients, date, text and attachment names.

    Raises EmptyFile, BrokenFile, ExtractionTimedOut and ExtractionTooLarge.
    """
    (record,) = read_records(
        "mail_reader",
        path,
        file_name=file_name,
        limits=limits,
        options={"characters": limits.max_characters},
    )
    (_, subject), *headers = record["headers"]
    head = "<br>".join(f"{name}: {escape(value)}" for name, value in headers if value)
    body = record["html"] or "".join(
        f"<p>{escape(block)}</p>".replace("\n", "<br>") for block in _blocks(record["text"])
    )
    names = [escape(name) for name in record["attachments"]]
    # Before the text, because a page may end without closing its elements.
    attached = f"<p>Attachments: {', '.join(names)}</p>" if names else ""
    heading = f"<h1>{escape(subject)}</h1>" if subject else ""
    read = read_html(
        f"<html><body>{heading}<p>{head}</p>{attached}<div>{body}",
        folder=path.parent,
        file_name=file_name,
        limits=limits,
    )
    return ExtractedText(
        text=read.text,
        extractor=EXTRACTOR,
        headings=read.headings,
        blocks=read.blocks,
        title=subject or None,
        warnings=(*read.warnings, *([ATTACHMENTS_LEFT_OUT] if names else [])),
    )


def _blocks(text: str) -> list[str]:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return [block.strip("\n") for block in lines.split("\n\n") if block.strip()]
