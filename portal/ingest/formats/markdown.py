"""Markdown: the text of the rendered page, with its headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from portal.domain.documents import ExtractedText
from portal.domain.documents.structure import BlockKind
from portal.ingest.formats.plain_text import read_text
from portal.ingest.formats.texts.html_text import HtmlText
from portal.ingest.formats.texts.readable_text import ReadableText, with_address
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_text_records
from portal.ingest.readers import markdown_reader

EXTRACTOR = "markdown-it-py"

# Max characters parsed in the worker itself: the worst input takes it 4 s and 64 MB.
_SHORT = 16_000

_FRONT_BEGIN = re.compile(r"---[ \t]*\n")
_FRONT_END = re.compile(r"^(?:---|\.\.\.)(?P<rest>.*)(?:\n|\Z)", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(['\"]?)([^\s'\"].*?)\1[ \t]*$", re.MULTILINE)


def extract(file: FileToRead) -> ExtractedText:
    """Return readable text: tables and lists by line, links with their address. Front matter and
    code are kept as written. The title is the front matter's, else the first heading. Raises
    EmptyFile, UndecodableText, ExtractionTimedOut and ExtractionTooLarge."""
    read = read_text(file)
    source = read.text
    front_matter, body = _parted(source)
    readable = ReadableText()
    if front_matter:
        readable.add_block(front_matter)
    for record in _records(body, file):
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
        title=_front_title(front_matter) or (headings[0].title if headings else None),
        warnings=read.warnings,
    )


def _records(source: str, file: FileToRead) -> Iterator[dict[str, Any]]:
    """Yield the records of `readers.markdown_reader`; short notes do not get a process each."""
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


def _front_title(front_matter: str) -> str | None:
    title = _FRONT_TITLE.search(front_matter)
    return title.group(2).strip() if title else None


_FOOTNOTE = re.compile(r"(?:^|\n)(?=\[\^[^\]\n]+\]:)")


def write_events(readable: ReadableText, events: Iterable[tuple[str, Any]]) -> None:
    """Add the text that a reader of the rendered page sees."""
    for kind, value in events:
        _ACTIONS[kind](readable, value)


def _add_paragraph(readable: ReadableText, parts: Sequence[tuple[str, Any]]) -> None:
    text = _inline_text(parts)
    if readable.in_row:
        readable.add_cell(text)
    elif text.startswith("[^") and not readable.in_list:
        for note in _FOOTNOTE.split(text):
            readable.add_block(note, BlockKind.FOOTNOTE if note.startswith("[^") else None)
    else:
        readable.add_paragraph(text.strip())
    for kind, value in parts:
        if kind == "image":
            readable.add_image(value)


_ACTIONS: Mapping[str, Callable[[ReadableText, Any], None]] = {
    "heading": lambda readable, value: readable.add_heading(value[0], _inline_text(value[1])),
    "paragraph": _add_paragraph,
    "list": lambda readable, first: readable.open_list(first),
    "/list": lambda readable, _: readable.close_list(),
    "item": lambda readable, _: readable.open_item(),
    "table": lambda readable, _: readable.open_table(),
    "row": lambda readable, is_header: readable.open_row(is_header=is_header),
    "/row": lambda readable, _: readable.close_row(),
    "/table": lambda readable, _: readable.close_table(),
    "code": lambda readable, code: readable.add_code(code),
    "html": lambda readable, events: HtmlText(readable).add_events(events),
    "block": lambda readable, text: readable.add_block(text),
}


def _inline_text(parts: Iterable[tuple[str, Any]]) -> str:
    texts: list[str] = []
    links: list[tuple[str, int]] = []
    for kind, value in parts:
        if kind == "text":
            texts.append(value)
        elif kind == "link":
            links.append((value, len(texts)))
        elif kind == "/link" and links:
            address, first = links.pop()
            texts[first:] = [with_address("".join(texts[first:]), address)]
    return "".join(texts)
