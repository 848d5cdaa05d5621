"""Reads one HTML file, in UTF-8, as a browser would, and tells what of it a person sees.

Records are lists of events, each `[kind, value]`, in reading order; the first says the title:

    {"title": "…"}
    {"events": [["text", "…"], ["heading", 2], ["/heading", null], ["list", 1], …]}

`heading` (its level), `list` (its first number, null for bullets), `row`, `cell`, `table`, `code`
and `link` (its address) have an end with a slash; `text`, `block` (a paragraph begins or ends),
`break` and `item` stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

Event = tuple[str, Any]

_EVENTS_A_RECORD = 2_000
_UNSEEN = frozenset({
    "head", "title", "script", "style", "template", "noscript", "iframe", "object", "embed",
    "svg", "canvas", "audio", "video", "datalist", "select", "textarea",
})  # fmt: skip
_UNSEEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "button", "caption", "center", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "header", "hgroup", "hr", "legend", "main", "menu", "nav", "p", "search", "section",
    "summary",
})  # fmt: skip
_HEADING = re.compile(r"h[1-6]")
_WITH_END = {"table": "table", "tr": "row", "td": "cell", "th": "cell"}
_CODE = frozenset({"pre", "listing", "xmp", "plaintext"})


def read(path: str, *, characters: int, events: int) -> Iterator[dict[str, Any]]:
    """The records; ends with an error when there are more than so many `characters` of text, or
    more than so many `events`, of which tags without any text make as many."""
    tree = LexborHTMLParser(Path(path).read_text(encoding="utf-8"))
    title = tree.css_first("title")
    yield {"title": title.text() if title is not None else ""}
    record: list[Event] = []
    for count, event in enumerate(_events(tree.body or tree.root), 1):
        if count > events:
            yield {"error": "memory"}
            return
        if event[0] == "text":
            characters -= len(event[1])
            if characters < 0:
                yield {"error": "characters"}
                return
        record.append(event)
        if len(record) == _EVENTS_A_RECORD:
            yield {"events": record}
            record = []
    yield {"events": record}


def _events(root: LexborNode | None) -> Iterator[Event]:
    """Without recursion: a file may be nested deeper than Python's stack is."""
    waiting: list[tuple[LexborNode, Event | None]] = [(root, None)] if root is not None else []
    while waiting:
        node, end = waiting.pop()
        if end is not None:
            yield end
            continue
        following = node.next
        if following is not None and node is not root:
            waiting.append((following, None))
        if node.is_text_node:
            yield "text", node.text_content or ""
        elif node.is_element_node and not _is_unseen(node):
            yield from (event for event in [_beginning(node)] if event)
            if (closing := _ending(node)) is not None:
                waiting.append((node, closing))
            if node.first_child is not None:
                waiting.append((node.first_child, None))


def _is_unseen(node: LexborNode) -> bool:
    if node.tag in _UNSEEN:
        return True
    attributes = node.attributes
    return "hidden" in attributes or bool(_UNSEEN_STYLE.search(attributes.get("style") or ""))


def _beginning(node: LexborNode) -> Event | None:  # noqa: PLR0911 - a table of cases
    tag = node.tag or ""
    if tag in _BLOCKS:
        return "block", None
    if tag in _WITH_END:
        return _WITH_END[tag], None
    if tag in _CODE:
        return "code", None
    if tag in {"ul", "ol"}:
        return "list", _first_number(node) if tag == "ol" else None
    if tag == "li":
        return "item", None
    if tag == "br":
        return "break", None
    if tag == "a":
        return "link", node.attributes.get("href") or ""
    if tag == "img":
        return "text", node.attributes.get("alt") or ""
    return ("heading", int(tag[1])) if _HEADING.fullmatch(tag) else None


def _ending(node: LexborNode) -> Event | None:
    tag = node.tag or ""
    if tag in _BLOCKS or tag == "li":
        return "block", None
    if tag in _WITH_END:
        return "/" + _WITH_END[tag], None
    if tag in _CODE:
        return "/code", None
    if tag in {"ul", "ol"}:
        return "/list", None
    if tag == "a":
        return "/link", None
    return ("/heading", None) if _HEADING.fullmatch(tag) else None


def _first_number(node: LexborNode) -> int:
    start = node.attributes.get("start") or ""
    return int(start) if re.fullmatch(r"[0-9]{1,6}", start) else 1
