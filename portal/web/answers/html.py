"""Answers as safe HTML, with markers that documents cannot forge.

An answer is written by a model that read untrusted documents. Markdown is parsed without raw HTML,
links and images, and the output is sanitised. Only then are markers inserted, at placeholders that
contain a secret of this rendering.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from portal.answering.markdown import answer_parser
from portal.answering.marker_syntax import SHOWN
from portal.domain.answering import SentenceSupport
from portal.web.presenters import cell_class

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
_UNSUPPORTED = "unsupported"
_CELL_CLASSES = {"is-short", "is-long"}
# If too wide, these scroll sideways, so the keyboard must be able to reach them.
_SCROLLING = re.compile("<(table|pre)>")
_FENCE_OR_TABLE = re.compile(r"^[ \t]*(?:```|~~~|\|)", re.MULTILINE)
# Markup at the start of a line: of a list, a heading or a quotation.
_LINE_START = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>)[ \t]+)*")
# Markdown treats these as punctuation, so inserting them does not change emphasis.
_OPEN, _CLOSE = "\u2039", "\u203a"  # Single angle quotation marks.
_FIRST_LEVEL = 3  # The page has its own h1 and h2.
_LAST_LEVEL = 6

_NO_FLAG = Markup("")

MarkerHtml = Callable[[int], Markup]


def to_html(
    content: str,
    *,
    markers: Collection[int],
    marker_html: MarkerHtml,
    flag_html: Markup = _NO_FLAG,
    support: Sequence[SentenceSupport] = (),
) -> Markup:
    """Render `content`. Each ``[n]`` outside code with n in `markers` becomes `marker_html(n)`;
    unsupported sentences are wrapped and followed by `flag_html`."""
    secret = secrets.token_hex(8)
    starts, ends = (f"{_OPEN}{secret}{side}{_CLOSE}" for side in "se")
    marked = _with_marks(content, support, starts, ends)
    environment: dict[str, Any] = {"markers": frozenset(markers), "secret": secret}
    environment |= {"cuts": (starts, ends)}
    html = _parser().render(marked, environment)
    safe = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"ol": {"start"}},
        allowed_classes={"span": {_UNSUPPORTED}, "th": _CELL_CLASSES, "td": _CELL_CLASSES},
        link_rel=None,
    )
    place = re.compile(f"{_OPEN}{secret}(?:m(\\d+)|(f)){_CLOSE}")
    safe = _SCROLLING.sub(r'<\1 tabindex="0">', safe)
    return Markup(  # noqa: S704 - sanitised above; what is put in is ours
        place.sub(lambda found: flag_html if found[2] else marker_html(int(found[1])), safe)
    )


def _with_marks(content: str, support: Sequence[SentenceSupport], starts: str, ends: str) -> str:
    """Return `content` with the unsupported sentences between `starts` and `ends`."""
    pieces: list[str] = []
    position = 0
    for sentence in sorted(support, key=lambda sentence: sentence.start):
        start, end = max(sentence.start, position), min(sentence.end, len(content))
        if sentence.is_supported is not False or start >= end:
            continue
        if start == 0 or content[start - 1] == "\n":
            found = _LINE_START.match(content, start)
            start = found.end() if found else start
        text = content[start:end].rstrip()
        if not text or _FENCE_OR_TABLE.search(text):
            continue
        pieces += [content[position:start], starts, text, ends]
        position = start + len(text)
    return "".join([*pieces, content[position:]])


@cache
def _parser() -> MarkdownIt:
    parser = answer_parser().enable("strikethrough")
    parser.inline.ruler.before("text", "marker", _read_marker)
    parser.core.ruler.push("support", _mark_unsupported)
    parser.core.ruler.push("headings", _lower_headings)
    parser.core.ruler.push("cells", _classify_cells)
    parser.add_render_rule("place", _place)
    parser.add_render_rule("unsupported", _wrap)
    return parser


def _read_marker(state: StateInline, silent: bool) -> bool:
    found = SHOWN.match(state.src, state.pos)
    if found is None or int(found[1]) not in state.env["markers"]:
        return False
    if not silent:
        state.push("place", "", 0).content = f"m{int(found[1])}"
    state.pos = found.end()
    return True


def _mark_unsupported(state: StateCore) -> None:
    """Remove the start and end marks and wrap the text between them, piece by piece, so that tags
    nest."""
    starts, ends = state.env["cuts"]
    cut = re.compile(f"({re.escape(starts)}|{re.escape(ends)})")
    for block in state.tokens:
        block.content = cut.sub("", block.content)
        if block.children is None:
            continue
        is_inside, children = False, []
        for child in block.children:
            if child.type != "text":
                child.content = cut.sub("", child.content)
                children.append(child)
                continue
            for piece in filter(None, cut.split(child.content)):
                if piece in (starts, ends):
                    is_inside = piece == starts
                    children += [] if is_inside else [_token("place", "f")]
                else:
                    children.append(_token("unsupported" if is_inside else "text", piece))
        block.children = children


def _token(kind: str, content: str) -> Token:
    return Token(kind, "", 0, content=content)


def _lower_headings(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            level = min(int(token.tag[1:]) + _FIRST_LEVEL - 1, _LAST_LEVEL)
            token.tag = f"h{level}"


def _classify_cells(state: StateCore) -> None:
    for cell, inline in pairwise(state.tokens):
        if cell.type not in {"th_open", "td_open"}:
            continue
        children = inline.children or []
        words = "".join(child.content for child in children if child.type != "place")
        if words and (name := cell_class(words)):
            cell.attrSet("class", name)


def _place(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, environment: Any
) -> str:
    return f"{_OPEN}{environment['secret']}{tokens[index].content}{_CLOSE}"


def _wrap(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _environment: Any
) -> str:
    return f'<span class="{_UNSUPPORTED}">{escapeHtml(tokens[index].content)}</span>'
