"""Writes the tokens of a Markdown parser as plain, readable text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from markdown_it.token import Token

from portal.ingest.formats.readable_text import ReadableText, with_address

_TAGS = re.compile(r"<!--|-->|<(/?[a-zA-Z][a-zA-Z0-9-]*)[^<>]*>")
_HIDDEN_ELEMENTS = frozenset({"script", "style"})
_LINE_BREAKS = frozenset({"br", "/p", "/div", "/li", "/tr", "hr", "/h1", "/h2", "/h3", "/h4"})


def write_tokens(readable: ReadableText, tokens: Sequence[Token]) -> None:
    """Add what a reader of the rendered page would read."""
    for position, token in enumerate(tokens):
        if token.type == "inline":
            _write_inline(readable, token, tokens[position - 1])
        elif action := _ACTIONS.get(token.type):
            action(readable, token)


def _write_inline(readable: ReadableText, token: Token, opening: Token) -> None:
    text = _inline_text(token.children or [])
    if readable.in_row:
        readable.add_cell(text)
    elif opening.type == "heading_open":
        readable.add_heading(int(opening.tag[1:]), text)
    else:
        readable.add_paragraph(text.strip())


def _open_list(readable: ReadableText, token: Token) -> None:
    start = token.attrGet("start")
    readable.open_list(None if token.type == "bullet_list_open" else int(start or 1))


_ACTIONS: Mapping[str, Callable[[ReadableText, Token], None]] = {
    "bullet_list_open": _open_list,
    "ordered_list_open": _open_list,
    "bullet_list_close": lambda readable, _: readable.close_list(),
    "ordered_list_close": lambda readable, _: readable.close_list(),
    "list_item_open": lambda readable, _: readable.open_item(),
    "tr_open": lambda readable, _: readable.open_row(),
    "tr_close": lambda readable, _: readable.close_row(),
    "table_close": lambda readable, _: readable.close_table(),
    "fence": lambda readable, token: readable.add_code(token.content),
    "code_block": lambda readable, token: readable.add_code(token.content),
    "html_block": lambda readable, token: readable.add_block(_without_tags(token.content).strip()),
}


def _inline_text(children: Sequence[Token]) -> str:
    parts: list[str] = []
    links: list[tuple[str, int]] = []
    for token in children:
        if token.type in {"text", "code_inline", "text_special"}:
            parts.append(token.content)
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif token.type == "image":
            parts.append(_inline_text(token.children or []) or token.content)
        elif token.type == "html_inline":
            parts.append(_without_tags(token.content))
        elif token.type == "link_open":
            links.append((str(token.attrGet("href") or ""), len(parts)))
        elif token.type == "link_close" and links:
            address, first = links.pop()
            parts[first:] = [with_address("".join(parts[first:]), address)]
    return "".join(parts)


def _without_tags(html: str) -> str:
    """The text between tags, without comments, scripts and styles. Linear in len(html)."""
    parts = []
    done = 0
    hidden_until: str | None = None
    for match in _TAGS.finditer(html):
        tag = (match.group(1) or match.group()).lower()
        if hidden_until is None:
            parts.append(html[done : match.start()])
            if tag == "<!--":
                hidden_until = "-->"
            elif tag in _HIDDEN_ELEMENTS:
                hidden_until = f"/{tag}"
            elif tag in _LINE_BREAKS:
                parts.append("\n")
            elif tag == "-->":
                parts.append(tag)
        elif tag == hidden_until:
            hidden_until = None
        done = match.end()
    if hidden_until is None:
        parts.append(html[done:])
    return "".join(parts)
