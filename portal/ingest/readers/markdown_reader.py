"""Reader of a Markdown text, in UTF-8, that yields the visible text of the rendered page.

Records are lists of events, each `[kind, value]`, in reading order:

    {"events": [["heading", [2, parts]], ["paragraph", parts], ["list", 1], ["item", null], …]}

`parts` are `["text", "…"]`, `["image", key]`, `["link", address]` and `["/link", null]`. A table
cell's text is a `paragraph` too; `list` has its first number (null for bullets), `footnote` its
number, `row` whether it is a header, `code` is verbatim, `block` is the text of an HTML block,
`html` the events of `html_reader` for one with headings, lists, tables or code. `list`, `footnote`,
`table` and `row` have an end event with a slash; `item` has none.

Blocks nested deeper than the parser goes would be lost: a single record, `{"is_nested": true}`,
then tells the caller to use the text unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.token import Token

from portal.ingest.readers import markdown_dialects, markdown_footnotes, markdown_wrapping
from portal.ingest.readers.image_keys import OF_FILE, key_of

Event = tuple[str, Any]

_DEEPEST_NESTING = 60
# No written paragraph is as long; hostile ones take 0.1 ms per character.
_MAX_INLINE_LENGTH = 50_000
_MAX_TABLE_TOKENS = 1_000
_EVENTS_A_RECORD = 2_000
_CHARACTERS_A_RECORD = 1_000_000
_TAGS = re.compile(r"<!--|-->|<(/?[a-zA-Z][a-zA-Z0-9-]*)[^<>]*>")
# Other names in angle brackets are not tags but text: "vector<int>", "<name>".
_ELEMENTS = frozenset(Path(__file__).with_name("html_elements.txt").read_text("utf-8").split())
_STRUCTURE = re.compile(
    r"<(?:h[1-6]|[uod]l|table|pre)\b|<img\s[^<>]{0,300}?\b(?:data:image/|portal-image:)",
    re.IGNORECASE,
)
# Bytes of images make paragraphs too long to be read as such, and those of drawings (SVG) are text.
_EMBEDDED = re.compile(
    r"""(\]\(\s{0,9}<?|\]:\s{0,9}<?|\bsrc=["'])(data:image/[\w.+;=-]{1,80},[A-Za-z0-9+/=]{40,})"""
)
_TABLE = re.compile(r"<(/?)table\b", re.IGNORECASE)
_HIDDEN_ELEMENTS = frozenset({"script", "style"})
_LINE_BREAKS = frozenset({"br", "/p", "/div", "/li", "/tr", "hr", "/h1", "/h2", "/h3", "/h4"})
_KINDS = {
    "bullet_list_open": "list",
    "bullet_list_close": "/list",
    "ordered_list_close": "/list",
    "list_item_open": "item",
    "footnote_close": "/footnote",
    "table_open": "table",
    "tr_close": "/row",
    "table_close": "/table",
}


def load(**_options: object) -> None:
    """Import the reader that only pages with HTML need. The worker does not call this, which keeps
    a parser written in C out of it."""
    from portal.ingest.readers import html_reader  # noqa: F401


def has_html(source: str) -> bool:
    """Return whether a text may hold HTML with headings, lists, tables or code."""
    return _STRUCTURE.search(source) is not None


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the records; end with an error above `characters` of text."""
    for record in records(file.read().decode()):
        characters -= sum(_length(event) for event in record.get("events", ()))
        if characters < 0:
            yield {"error": "characters"}
            return
        yield record


def records(source: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a text of any length; parsing takes up to a kilobyte per character."""
    # One parser per call: it is cheap to create and keeps state while it works.
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("paragraph", "end_of_list", _end_of_list, {"alt": ["paragraph"]})
    markdown_dialects.extend(parser)
    markdown_footnotes.extend(parser)
    environment: dict[str, Any] = {}
    source = _EMBEDDED.sub(lambda one: one[1] + OF_FILE + key_of(one[2]), source)
    tokens = parser.parse(source, environment)
    if max((token.level for token in tokens), default=0) >= _DEEPEST_NESTING - 1:
        yield {"is_nested": True}
        return
    events: list[Event] = []
    length = 0
    for event in _events(tokens, parser, environment):
        events.append(event)
        length += _length(event)
        if len(events) == _EVENTS_A_RECORD or length > _CHARACTERS_A_RECORD:
            yield {"events": events}
            events, length = [], 0
    yield {"events": events}


def _table(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse a table. Cells of a row beyond the header's, which the parser drops, are kept."""
    begin = len(state.tokens)
    if not table(state, first, last, silent):
        return False
    row: list[Token] = []
    for token in state.tokens[begin:]:
        if token.type == "inline":
            row.append(token)
        elif token.type == "tr_close":
            line, _ = row[0].map or (first, first)
            source = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
            cells = escapedSplit(source.strip())
            cells = cells[not cells[0] :]
            while len(cells) > len(row) and not cells[-1].strip():
                cells.pop()
            if len(cells) > len(row):
                for cell, content in zip(row, _fit(cells, len(row)), strict=True):
                    cell.content = content.strip()
            row = []
    return True


def _fit(cells: Sequence[str], count: int) -> list[str]:
    """Return this number of cells: the parts of code with a bar, then the last ones are joined."""
    fitted: list[list[str]] = []
    is_code = False
    for left, cell in enumerate(cells):
        if len(fitted) == count:
            fitted[-1] += cells[left:]
            break
        if is_code and len(fitted) + len(cells) - left > count:
            fitted[-1].append(cell)
        else:
            fitted.append([cell])
            is_code = False
        is_code ^= cell.count("`") % 2 == 1
    return ["|".join(parts) for parts in fitted]


def _end_of_list(state: StateBlock, line: int, _last: int, silent: bool) -> bool:
    """Return whether a list ends before a line: at the margin, after a full stop. CommonMark would
    continue the last item, but the author only left out an empty line."""
    is_at_margin = silent and 0 <= state.sCount[line] < state.blkIndent
    above = state.src[state.bMarks[line - 1] : state.eMarks[line - 1]] if is_at_margin else ""
    return above.rstrip().endswith((".", "。", "!", "！"))


def _length(event: Event) -> int:
    """Return the length of the event's text."""
    kind, value = event
    if kind == "html":
        return sum(len(text) for part, text in value if part == "text")
    if kind in {"heading", "paragraph"}:
        parts = value[1] if kind == "heading" else value
        return sum(len(text) for part, text in parts if part == "text")
    return len(value) if isinstance(value, str) else 0


def _events(
    tokens: Sequence[Token], parser: MarkdownIt, environment: dict[str, object]
) -> Iterator[Event]:
    done = 0  # Tokens that an HTML table takes up.
    for position, token in enumerate(tokens):
        if position < done:
            continue
        # The parser makes the title of an alert ("[!NOTE]" gives "Note"); it is not in the text.
        if token.type == "inline" and tokens[position - 1].type != "alert_title_open":
            parts = _inline(token.content, parser, environment)
            opening = tokens[position - 1]
            is_heading = opening.type == "heading_open"
            yield ("heading", [int(opening.tag[1:]), parts]) if is_heading else ("paragraph", parts)
        elif token.type == "ordered_list_open":
            yield "list", int(token.attrGet("start") or 1)
        elif token.type in {"fence", "code_block"}:
            yield "code", token.content
        elif token.type == "html_block":
            done = _table_end(tokens, position) if _STRUCTURE.search(token.content) else 0
            yield _html_block(tokens[position : done or position + 1], parser, environment)
        elif token.type == "tr_open":
            yield "row", tokens[position - 1].type == "thead_open"
        elif token.type == "footnote_open":
            yield "footnote", markdown_footnotes.number_of(token.info, environment)
        elif kind := _KINDS.get(token.type):
            yield kind, None


def _html_block(
    tokens: Sequence[Token], parser: MarkdownIt, environment: dict[str, object]
) -> Event:
    """Return the event of an HTML block, which may take up several tokens."""
    source = "".join(_as_html(token, parser, environment) for token in tokens)
    source = markdown_dialects.without_markup(source)
    if _STRUCTURE.search(tokens[0].content):
        return "html", _html_events(source)
    return "block", _without_tags(source).strip()


def _html_events(source: str) -> list[Event]:
    from portal.ingest.readers.html_reader import fragment_events

    return fragment_events(source)


def _table_end(tokens: Sequence[Token], first: int) -> int:
    """Return the index after the token that closes the tables of an HTML block, which ends at an
    empty line within a table; the index after the block if no token closes them."""
    depth = 0
    for position in range(first, min(len(tokens), first + _MAX_TABLE_TOKENS)):
        if tokens[position].type == "html_block":
            ends = _TABLE.findall(tokens[position].content)
            depth += len(ends) - 2 * sum(map(bool, ends))
            if depth <= 0:
                return position + 1
    return first + 1


def _as_html(token: Token, parser: MarkdownIt, environment: dict[str, object]) -> str:
    """Return the HTML of a part of an HTML table; Markdown within it reads as text."""
    if token.type in {"html_block", "code_block"}:  # Rows below an empty line are indented.
        return token.content
    if token.type != "inline":
        return html.escape(token.content)
    parts = _inline(token.content, parser, environment)
    return html.escape("".join(text for kind, text in parts if kind == "text"))


def _inline(content: str, parser: MarkdownIt, environment: dict[str, object]) -> list[Event]:
    """Return the parts of a paragraph; a very long one is kept as it is written."""
    if len(content) > _MAX_INLINE_LENGTH:
        return [("text", content)]
    children: list[Token] = []
    source = markdown_wrapping.without_wrapping(content)
    parser.inline.parse(source, parser, environment, children)
    return _parts(children)


def _parts(children: Sequence[Token]) -> list[Event]:
    parts: list[Event] = []
    for token in children:
        if token.type in {"text", "code_inline", "text_special"}:
            parts.append(("text", token.content))
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append(("text", "\n"))
        elif token.type == "image":
            key = key_of(str(token.attrGet("src") or ""))
            parts += [("image", key)] if key else []
            described = _parts(token.children or [])
            has_text = any(value for _, value in described)
            parts += described if has_text else [("text", token.content)]
        elif token.type == "html_inline":
            parts.append(("text", _without_tags(token.content)))
        elif token.type == "link_open":
            parts.append(("link", str(token.attrGet("href") or "")))
        elif token.type == "link_close":
            parts.append(("/link", None))
    return parts


def _is_element(tag: str) -> bool:
    """Return whether this is an HTML element's name, standard or, with a hyphen, custom."""
    name = tag.removeprefix("/")
    return name in _ELEMENTS or "-" in name


def _without_tags(source: str) -> str:
    """Return the text between tags, without comments, scripts and styles. Linear in len(source)."""
    parts = []
    done = 0
    hidden_until: str | None = None
    for match in _TAGS.finditer(source):
        tag = (match.group(1) or match.group()).lower()
        if hidden_until is None:
            parts.append(source[done : match.start()])
            if tag == "<!--":
                hidden_until = "-->"
            elif tag in _HIDDEN_ELEMENTS:
                hidden_until = f"/{tag}"
            elif tag in _LINE_BREAKS:
                parts.append("\n")
            elif tag == "-->" or not _is_element(tag):
                parts.append(match.group())
        elif tag == hidden_until:
            hidden_until = None
        done = match.end()
    if hidden_until is None:
        parts.append(source[done:])
    return "".join(parts)
