"""Reader of an HTML file, in UTF-8, that yields its visible text as a browser parses it.

Records are lists of events, each `[kind, value]`, in reading order; the first says the title:

    {"title": "…", "is_flattened": false}
    {"events": [["text", "…"], ["heading", 2], ["/heading", null], ["list", 1], …]}

`heading` (its level), `list` (its first number, null for bullets), `row`, `cell` (columns and rows
that it spans, whether it is a header), `table`, `caption`, `code` and `link` (its address) have an
end with a slash; `text`, `block` (a paragraph begins or ends), `break` and `item` (whether it is a
footnote) stand alone. `section` has an end too.

HTML's rules for an element look at all open elements around it, so deep nesting costs the square
of its depth. Like browsers, `flattened` therefore drops the tags of content that is nested deeper
than any page needs, before anything is parsed; `is_flattened` records this.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, BinaryIO

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

Event = tuple[str, Any]

_EVENTS_A_RECORD = 2_000
_UNSEEN = frozenset({
    "head", "title", "script", "style", "template", "noscript", "iframe", "object", "embed",
    "svg", "canvas", "audio", "video", "datalist", "select", "textarea",
})  # fmt: skip
_UNSEEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "button", "center", "dd",
    "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer",
    "form", "header", "hgroup", "hr", "legend", "main", "menu", "nav", "p", "search", "section",
    "summary",
})  # fmt: skip
_DEEPEST = 500  # Browsers stop at 512.
# A tag up to its ">"; quotation marks count only after "=". Possessive, to rule out backtracking.
# The last alternative is an unterminated tag.
_MARKUP = re.compile(
    r"""<(?:(?P<comment>!--)|(?P<close>/?)(?P<name>[a-zA-Z][^\s/>]*+)
    (?P<rest>[^>=]*+(?:=\s*+(?:"[^"]*+"|'[^']*+'|(?!["']))[^>=]*+)*+)>|[!?][^>]*+>|(?P<endless>/?[a-zA-Z]))""",
    re.VERBOSE,
)
_MAX_ATTRIBUTES = 1_000
_ATTRIBUTE = re.compile(r"""[^\s/=]+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"']\S*+))?""")
_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
})  # fmt: skip
_RAW_TEXT = frozenset({
    "iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp",
})  # fmt: skip
# Elements that end where one of their kind begins, if they are still open.
_KIND = {
    **dict.fromkeys(("td", "th"), "cell"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), "rows"),
    **dict.fromkeys(("dt", "dd"), "term"),
    **dict.fromkeys(("rt", "rp"), "ruby"),
    **{name: name for name in ("li", "p", "tr", "option", "optgroup")},
}
_MAX_SEARCHED = 30  # Open elements searched for one of a kind.
# Elements whose end leaves open what began inside them.
_LEAVES_OPEN = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "p", "s", "small", "strike", "strong", "tt",
    "u",
})  # fmt: skip
_IN_CELL = frozenset({"table", "td", "th", "caption"})
_IN_LIST = frozenset({"ul", "ol", "dl"}) | _IN_CELL
# The scope in which such an element is searched for: neither its start nor its end tag reaches
# beyond it.
_BEGINS_WITHIN = {
    **dict.fromkeys(("li", "term"), _IN_LIST | _BLOCKS - {"address", "dd", "div", "dt", "p"}),
    **dict.fromkeys(("cell", "rows", "tr"), frozenset({"table"})),
    **dict.fromkeys(("option", "optgroup"), frozenset({"select"})),
    **dict.fromkeys(("p", "ruby"), _IN_CELL),
}
_ENDS_WITHIN = _BEGINS_WITHIN | dict.fromkeys(("li", "term"), _IN_LIST)
_HEADING = re.compile(r"h[1-6]")
_WITH_END = {
    "table": "table",
    "tr": "row",
    "td": "cell",
    "th": "cell",
    "caption": "caption",
    "portal-section": "section",  # A slide; no other source produces it.
}
_MAX_SPAN = 100  # Larger spans are a way to write a million cells.
_NOTE = re.compile(r"(?:foot|end)note-|fn[-:]?\d")
_CODE = frozenset({"pre", "listing", "xmp", "plaintext"})


def read(file: BinaryIO, *, characters: int, events: int) -> Iterator[dict[str, Any]]:
    """Yield the records; end with an error above `characters`, `events` or attributes of a tag.

    Events have a limit because tags without any text make as many.
    """
    html = file.read().decode()
    if has_crowded_tag(html):
        yield {"error": "too_many", "what": "attributes", "limit": _MAX_ATTRIBUTES}
        return
    html, is_flattened = flattened(html)
    try:
        tree = LexborHTMLParser(html)
    except SelectolaxError:
        # Any content is a valid page, so only memory can be the cause.
        yield {"error": "memory"}
        return
    title = tree.css_first("title")
    yield {"title": title.text() if title is not None else "", "is_flattened": is_flattened}
    record: list[Event] = []
    for count, event in enumerate(_events(tree.body or tree.root), 1):
        if count > events:
            yield {"error": "too_many", "what": "elements", "limit": events}
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


def has_crowded_tag(html: str) -> bool:
    """Tell whether some tag has more than `_MAX_ATTRIBUTES`.

    The parser compares each attribute of a tag with all before it: a million take it an hour.
    """
    for tag in _tags(html):
        rest = html[tag.end() :] if tag["endless"] else tag["rest"]
        if (
            len(rest) > 2 * _MAX_ATTRIBUTES
            and sum(1 for _ in _ATTRIBUTE.finditer(rest)) > _MAX_ATTRIBUTES
        ):
            return True
    return False


def flattened(html: str) -> tuple[str, bool]:
    """Replace tags that are nested too deep with a space; return the page and whether any were.

    Linear in the length and approximate: open elements are tracked without all of HTML's rules.
    """
    if html.count("<") <= _DEEPEST:
        return html, False
    kept, done, open_elements = [], 0, _OpenElements()
    for tag in _tags(html):
        if tag["endless"]:
            break
        name = tag["name"].lower()
        if tag["close"]:
            is_kept = open_elements.end(name)
        else:
            is_kept = open_elements.begin(name, is_closed=tag["rest"].endswith("/"))
        if not is_kept:
            kept += [html[done : tag.start()], " "]
            done = tag.end()
    return ("".join([*kept, html[done:]]), True) if kept else (html, False)


def _tags(html: str) -> Iterator[re.Match[str]]:
    """Yield the tags of a page, except those inside comments, scripts and the like.

    The last may be `endless`, cut off by the end of the page.
    """
    place = html.find("<")
    while place >= 0:
        match = _MARKUP.match(html, place)
        if match is None:
            place = html.find("<", place + 1)
        elif match["endless"]:  # The rest of the page belongs to it.
            yield match
            return
        elif match["comment"]:
            place = html.find("-->", place + 2)
        elif match["name"]:
            yield match
            is_raw = not match["close"] and match["name"].lower() in _RAW_TEXT
            place = _end_of_raw_text(html, match) if is_raw else html.find("<", match.end())
        else:
            place = html.find("<", match.end())


def _end_of_raw_text(html: str, tag: re.Match[str]) -> int:
    close = re.compile(f"</{tag['name']}(?=[\\s/>])", re.IGNORECASE).search(html, tag.end())
    return close.start() if close else -1


class _OpenElements:
    """The open elements at a place of a page, and whether their tags are kept."""

    def __init__(self) -> None:
        self._open: list[tuple[str, bool]] = []
        self._count: defaultdict[str, int] = defaultdict(int)

    def begin(self, name: str, *, is_closed: bool) -> bool:
        """Open an element; return whether its tag is kept."""
        if kind := _KIND.get(name):
            self._end_one_of(kind)
        is_kept = len(self._open) < _DEEPEST
        is_drawn = is_closed and (self._count["svg"] or self._count["math"])
        if name not in _VOID and not is_drawn:
            self._open.append((name, is_kept))
            self._count[name] += 1
        return is_kept

    def _end_one_of(self, kind: str) -> None:
        bounds = _BEGINS_WITHIN[kind]
        for place in range(len(self._open) - 1, max(-1, len(self._open) - _MAX_SEARCHED), -1):
            name = self._open[place][0]
            if _KIND.get(name) == kind:
                # Elements opened in a paragraph either ended it or continue after it.
                self._forget(place, place + 1 if kind == "p" else len(self._open))
                return
            if name in bounds:
                return

    def end(self, name: str) -> bool:
        """Close an element if it is open; return whether its tag is kept."""
        if not self._count[name]:
            return True
        bounds = _ENDS_WITHIN.get(_KIND.get(name, ""), frozenset())
        place = len(self._open) - 1
        while self._open[place][0] != name:
            if self._open[place][0] in bounds:
                return True
            place -= 1
        is_kept = self._open[place][1]
        leaves_open = name in _LEAVES_OPEN and len(self._open) - place < _MAX_SEARCHED
        self._forget(place, place + 1 if leaves_open else len(self._open))
        return is_kept

    def _forget(self, first: int, end: int) -> None:
        for name, _ in self._open[first:end]:
            self._count[name] -= 1
        del self._open[first:end]


def _events(root: LexborNode | None) -> Iterator[Event]:
    """Yield events without recursion: a file may be nested deeper than Python's stack."""
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
    if tag in {"td", "th"}:
        return "cell", [_span(node, "colspan"), _span(node, "rowspan"), tag == "th"]
    if tag in _WITH_END:
        return _WITH_END[tag], None
    if tag in _CODE:
        return "code", None
    if tag in {"ul", "ol"}:
        return "list", _first_number(node) if tag == "ol" else None
    if tag == "li":
        return "item", bool(_NOTE.match(node.attributes.get("id") or ""))
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


def _span(node: LexborNode, name: str) -> int:
    value = node.attributes.get(name) or ""
    return min(int(value), _MAX_SPAN) if re.fullmatch(r"[1-9][0-9]{0,3}", value) else 1


def _first_number(node: LexborNode) -> int:
    start = node.attributes.get("start") or ""
    return int(start) if re.fullmatch(r"[0-9]{1,6}", start) else 1
