"""EML: an e-mail with its subject, sender, recipients and text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from typing import Any

from portal.domain.documents import ExtractedText
from portal.errors import N_
from portal.ingest.formats.html import read_html
from portal.ingest.formats.pages.page_layout import join
from portal.ingest.formats.texts.spaced_tables import find_tables
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records
from portal.text.layout.sentences import LIST_ITEM, each_sentence

EXTRACTOR = "email"

_QUOTED = re.compile(r"^(?:> ?)+")
_ASKS = re.compile(r"[?？][”’」』\"')]*$")
ATTACHMENTS_LEFT_OUT = N_("attachments were skipped")
PARTS_LEFT_OUT = N_("nested too deeply: the innermost parts were skipped")
_LEFT_OUT = {"attachments": ATTACHMENTS_LEFT_OUT, "is_cut": PARTS_LEFT_OUT}


def extract(file: FileToRead) -> ExtractedText:
    """Return the subject as a heading, sender, recipients, date, text and attachment names; then
    the same of attached e-mails. Raises EmptyFile, BrokenFile, ExtractionTimedOut, TooMuchInOne and
    ExtractionTooLarge."""
    records = list(read_records("mail_reader", file, characters=file.limits.max_characters))
    mails = (_mail(record, 2 if place else 1) for place, record in enumerate(records))
    read = read_html("<html><body>" + "".join(mails), file)
    left_out = [words for key, words in _LEFT_OUT.items() if any(each[key] for each in records)]
    return replace(read, extractor=EXTRACTOR, warnings=(*read.warnings, *left_out))


def _mail(record: dict[str, Any], level: int) -> str:
    """Return an e-mail as HTML, its subject as a heading of this level."""
    (_, subject), *headers = record["headers"]
    heading = f"<h{level}>{escape(subject)}</h{level}>" if subject else ""
    head = "<br>".join(f"{name}: {escape(value)}" for name, value in headers if value)
    names = [escape(name) for name in record["attachments"]]
    # Before the text, because a page may end without closing its elements.
    attached = f"<p>Attachments: {', '.join(names)}</p>" if names else ""
    body = "".join(
        text if kind == "text/html" else "".join(_html(*block) for block in _blocks(text))
        for kind, text in record["bodies"]
    )
    return f"{heading}<p>{head}</p>{attached}<div>{body}</div>"


def _html(block: str, is_quoted: bool) -> str:
    """Return a paragraph as HTML, with the table that its lines may draw."""
    lines = block.split("\n")
    html, done = "", 0
    write = _quotation if is_quoted else _paragraph
    for first, end, rows in find_tables(lines):
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        table = "".join(f"<tr>{row}</tr>" for row in cells)
        html += f"{write(lines[done:first])}<table>{table}</table>"
        done = end
    return html + write(lines[done:])


def _paragraph(lines: Sequence[str]) -> str:
    return f"<p>{'<br>'.join(map(escape, lines))}</p>"


def _quotation(lines: Sequence[str]) -> str:
    """Return a quoted paragraph as HTML, in which each question stands alone and keeps a mark: what
    follows is not its answer, as it is in a list of questions."""
    text = "\n".join(lines)
    html, done = "", 0
    for start, end in each_sentence(text):
        sentence = text[start:end]
        if _ASKS.search(sentence) and not LIST_ITEM.match(sentence):
            html += _paragraph(text[done:start].strip().splitlines())
            html += _paragraph([f"> {join(sentence.splitlines())}"])
            done = end
    return html + _paragraph(text[done:].strip().splitlines())


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs of a text, without the marks of lines that are quoted, and whether they
    are quoted."""
    for is_quoted, group in groupby(text.splitlines(), lambda line: line.startswith(">")):
        lines = "\n".join(_QUOTED.sub("", line).rstrip() for line in group)
        for block in lines.split("\n\n"):
            if block.strip():
                yield block.strip("\n"), is_quoted
