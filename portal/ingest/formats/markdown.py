"""Markdown: what a reader of the rendered page would read, with its headings."""

from __future__ import annotations

import re
import time
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from portal.domain.documents import ExtractedText
from portal.errors import ExtractionTimedOut
from portal.ingest.formats.markdown_text import write_tokens
from portal.ingest.formats.plain_text import read_text
from portal.ingest.formats.readable_text import ReadableText
from portal.ingest.limits import ExtractionLimits

EXTRACTOR = "markdown-it-py"

# Deeper blocks are dropped by the parser; a text that has any is taken as it stands.
_DEEPEST_NESTING = 60
_LONGEST_INLINE = 50_000  # No written paragraph is as long; hostile ones take 0.1 ms a character.

_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(?P<body>(?:(?!---|\.\.\.).*\n)*)(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(['\"]?)(.+?)\1[ \t]*$", re.MULTILINE)


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    encoding: str | None = None,
) -> ExtractedText:
    """Readable text: front matter and code as written, tables and lists by line, links with
    their address. The title is the first heading, else the front matter's.

    Raises EmptyFile, UndecodableText and ExtractionTimedOut.
    """
    source, used = read_text(path, file_name=file_name, encoding=encoding)
    front = _FRONT_MATTER.match(source)
    front_matter = front["body"].strip() if front else ""
    body = source[front.end() :] if front else source
    tokens = _parse(body, file_name, limits.timeout_s)
    readable = ReadableText()
    if front_matter:
        readable.add_block(front_matter)
    if max((token.level for token in tokens), default=0) >= _DEEPEST_NESTING - 1:
        readable.add_block(body.strip("\n"))
    else:
        write_tokens(readable, tokens)
    headings = tuple(readable.headings)
    text = readable.text()
    if not text.strip():  # Nothing but comments or link definitions: better those than nothing.
        text, headings = source, ()
    return ExtractedText(
        text=text,
        extractor=EXTRACTOR,
        headings=headings,
        encoding=used,
        title=headings[0].title if headings else _front_title(front_matter),
    )


def _parse(source: str, file_name: str, seconds: float) -> list[Token]:
    """Block tokens, each `inline` one with its children; monstrous paragraphs stay raw."""
    deadline = time.monotonic() + seconds
    # One parser a call: it is cheap to make and keeps state while it works.
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    environment: dict[str, object] = {}
    tokens = parser.parse(source, environment)
    for token in tokens:
        if token.type != "inline":
            continue
        if time.monotonic() > deadline:
            raise ExtractionTimedOut(name=file_name, seconds=seconds)
        if len(token.content) > _LONGEST_INLINE:
            raw = Token("text", "", 0)
            raw.content = token.content
            token.children = [raw]
        else:
            token.children = []
            parser.inline.parse(token.content, parser, environment, token.children)
    return tokens


def _front_title(front_matter: str) -> str | None:
    title = _FRONT_TITLE.search(front_matter)
    return title.group(2).strip() if title else None
