"""Writes the tokens of a Markdown parser as plain, readable text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from markdown_it.token import Token

from portal.domain.documents import Heading

_LONGEST_ADDRESS = 200  # Longer ones are data, not addresses that someone reads.
_TAGS = re.compile(r"<!--|-->|<(/?[a-zA-Z][a-zA-Z0-9-]*)[^<>]*>")
_HIDDEN_ELEMENTS = frozenset({"script", "style"})
_LINE_BREAKS = frozenset({"br", "/p", "/div", "/li", "/tr", "hr", "/h1", "/h2", "/h3", "/h4"})
_SPACES = re.compile(r"\s+")


class MarkdownText:
    """Collects blocks of text, an empty line between them, and where headings begin."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self._parts: list[str] = []
        self._length = 0
        self._lists: list[int | None] = []  # Open lists: the next number, None for bullets.
        self._marker = ""
        self._cells: list[str] | None = None
        self._tight = False

    def text(self) -> str:
        return "".join(self._parts)

    def add_block(self, block: str) -> None:
        """Add a paragraph, or the like; items of a list and rows of a table keep together."""
        if not block.strip():
            return
        if self._parts:
            self._write("\n" if self._tight else "\n\n")
        self._write(block)
        self._tight = False

    def add_tokens(self, tokens: Sequence[Token]) -> None:
        for position, token in enumerate(tokens):
            if token.type == "inline":
                self._add_inline(token, tokens[position - 1])
            elif action := self._ACTIONS.get(token.type):
                action(self, token)

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _add_inline(self, token: Token, opening: Token) -> None:
        text = _inline_text(token.children or [])
        if self._cells is not None:
            self._cells.append(_SPACES.sub(" ", text).strip())
        elif opening.type == "heading_open":
            title = _SPACES.sub(" ", text).strip()
            self.add_block(title)
            if title:
                level = int(opening.tag[1:])
                self.headings.append(Heading(level, title, self._length - len(title)))
        else:
            self._add_item_text(text.strip())

    def _add_item_text(self, text: str) -> None:
        if not self._lists:
            self.add_block(text)
            return
        indent = "  " * (len(self._lists) - 1)
        hanging = indent + (" " * len(self._marker) if self._marker else "  ")
        # The first paragraph of an item stands beside its marker, the rest below it.
        self.add_block(indent + (self._marker or "  ") + text.replace("\n", "\n" + hanging))
        self._marker = ""
        self._tight = True

    def _open_list(self, token: Token) -> None:
        start = token.attrGet("start")
        self._lists.append(None if token.type == "bullet_list_open" else int(start or 1))
        self._marker = ""

    def _close_list(self, _token: Token) -> None:
        self._lists.pop()
        self._tight = bool(self._lists)

    def _open_item(self, _token: Token) -> None:
        number = self._lists[-1]
        self._marker = "- " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1

    def _open_row(self, _token: Token) -> None:
        self._cells = []

    def _close_row(self, _token: Token) -> None:
        cells, self._cells = self._cells or [], None
        self.add_block(" | ".join(cells))
        self._tight = True

    def _close_table(self, _token: Token) -> None:
        self._tight = False

    def _code(self, token: Token) -> None:
        self.add_block(token.content.rstrip("\n"))

    def _html(self, token: Token) -> None:
        self.add_block(_without_tags(token.content).strip())

    _ACTIONS: ClassVar[dict[str, Callable[[MarkdownText, Token], None]]] = {
        "bullet_list_open": _open_list,
        "ordered_list_open": _open_list,
        "bullet_list_close": _close_list,
        "ordered_list_close": _close_list,
        "list_item_open": _open_item,
        "tr_open": _open_row,
        "tr_close": _close_row,
        "table_close": _close_table,
        "fence": _code,
        "code_block": _code,
        "html_block": _html,
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
            if _worth_showing(address, "".join(parts[first:])):
                parts.append(f" ({address})")
    return "".join(parts)


def _worth_showing(address: str, link_text: str) -> bool:
    """Whether people would miss the address: it answers "where do I find …"."""
    if not address.startswith(("http://", "https://", "mailto:")):
        return False
    return len(address) <= _LONGEST_ADDRESS and address.removeprefix("mailto:") not in link_text


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
