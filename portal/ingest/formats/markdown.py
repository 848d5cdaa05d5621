"""Markdown: the text of the rendered page, with its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from portal.domain.documents import ExtractedText
from portal.ingest.formats.plain_text import read_text
from portal.ingest.formats.texts.markdown_text import inline_text, write_events
from portal.ingest.formats.texts.readable_text import ReadableText
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_text_records
from portal.ingest.readers import markdown_reader

EXTRACTOR = "markdown-it-py"

# Max characters parsed in the worker itself: the worst input takes it 4 s and 64 MB.
_SHORT = 16_000

_FRONT_BEGIN = re.compile(r"---[ \t]*\n")
_FRONT_END = re.compile(r"^(?:---|\.\.\.)(?P<rest>.*)(?:\n|\Z)", re.MULTILINE)
# A title of several lines stays in the text as it is written.
_FRONT_TITLE = re.compile(r"^title:[ \t]*(\S.*)$(?!\n[ \t])", re.MULTILINE)

# Keys that tell a site generator what to do with a page, with the lines below them.
_OF_GENERATOR = re.compile(
    r"^(?:(?:layout|template|permalink|slug|redirect_(?:from|to)|locales|lang|prev|next"
    r"|(?:nav|menu|sidebar|toc|hide)(?:_\w+)?|icon|image|cover|css|js|mathjax|katex|editLink|c?spell"
    r"|outputs|cascade|(?:grand_)?parent|has_children)[ \t]*:.*|title:[ \t]*$(?!\n[ \t])"
    # People use these keys in notes too, so only the values of site generators match.
    r"|aliases[ \t]*:[\s\[\"'-]*/.*|weight[ \t]*:[ \t]*-?\d+[ \t]*$|head[ \t]*:[ \t]*$"
    r"|comments[ \t]*:[ \t]*(?:true|false)[ \t]*$)(?:\n(?:[ \t]+|-[ \t]).*)*\n?",
    re.MULTILINE,
)


def extract(file: FileToRead) -> ExtractedText:
    """Return readable text: tables and lists by line, links with their address. Code is kept as
    written, and so is front matter that is not for a site generator; its title is a heading. Raises
    EmptyFile, UndecodableText, ExtractionTimedOut and ExtractionTooLarge."""
    read = read_text(file)
    source = read.text
    front_matter, body = _parted(source)
    readable = ReadableText()
    for number, record in enumerate(_records(body, file)):
        if not number:
            _add_front_matter(readable, front_matter, record)
        if "is_nested" in record:
            readable.add_block(body.strip("\n"))
        else:
            write_events(readable, record["events"])
    headings, blocks = tuple(readable.headings), readable.all_blocks
    text = readable.text()
    if not text.strip():  # A file with only comments or link definitions is kept as it is.
        text, headings, blocks = source, (), ()
    return ExtractedText(
        text=text,
        extractor=EXTRACTOR,
        headings=headings,
        blocks=blocks,
        encoding=read.encoding,
        warnings=read.warnings,
    )


def _records(source: str, file: FileToRead) -> Iterator[dict[str, Any]]:
    """Yield the records of `readers.markdown_reader`; short notes are read without a process."""
    if len(source) <= _SHORT and not markdown_reader.has_html(source):
        return markdown_reader.records(source)
    return read_text_records("markdown_reader", source, file, characters=file.limits.max_characters)


def _parted(source: str) -> tuple[str, str]:
    """Return the front matter, empty if there is none, and the rest."""
    begin = _FRONT_BEGIN.match(source)
    end = _FRONT_END.search(source, begin.end()) if begin else None
    if begin is None or end is None or end["rest"].strip(" \t"):
        return "", source
    return source[begin.end() : end.start()].strip(), source[end.end() :]


def _add_front_matter(readable: ReadableText, front_matter: str, record: Mapping[str, Any]) -> None:
    """Add the title, as sites do above a text that does not begin with it, and the other front
    matter that is written for readers."""
    headings = (value for kind, value in record.get("events", ()) if kind == "heading")
    level, parts = next(headings, (0, []))
    shown = inline_text(parts).casefold() if level == 1 else ""
    title = _front_title(front_matter)
    if title and title.casefold() not in shown:
        readable.add_heading(1, title)
    rest = _FRONT_TITLE.sub("", front_matter, count=1) if title else front_matter
    readable.add_block(_OF_GENERATOR.sub("", rest).strip())


def _front_title(front_matter: str) -> str | None:
    found = _FRONT_TITLE.search(front_matter)
    title = found[1].strip() if found else ""
    if len(title) > 1 and title[0] == title[-1] and title[0] in "'\"":
        title = title[1:-1].strip()
    return None if title.startswith(("'", '"', "|", ">")) else title or None
