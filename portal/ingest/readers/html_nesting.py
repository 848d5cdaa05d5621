"""Limits on the tags of a web page, checked before anything is parsed.

HTML's rules for an element look at all open elements around it, so deep nesting costs the square
of its depth. Like browsers, `flatten` therefore drops the tags of content that is nested deeper
than any page needs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

BLOCKS = frozenset({
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
MAX_ATTRIBUTES = 1_000
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
# Elements whose end tag leaves the elements inside them open.
_LEAVES_OPEN = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "p", "s", "small", "strike", "strong", "tt",
    "u",
})  # fmt: skip
_IN_CELL = frozenset({"table", "td", "th", "caption"})
_IN_LIST = frozenset({"ul", "ol", "dl"}) | _IN_CELL
# The scope in which such an element is searched for: neither its start nor its end tag reaches
# beyond it.
_BEGINS_WITHIN = {
    **dict.fromkeys(("li", "term"), _IN_LIST | BLOCKS - {"address", "dd", "div", "dt", "p"}),
    **dict.fromkeys(("cell", "rows", "tr"), frozenset({"table"})),
    **dict.fromkeys(("option", "optgroup"), frozenset({"select"})),
    **dict.fromkeys(("p", "ruby"), _IN_CELL),
}
_ENDS_WITHIN = _BEGINS_WITHIN | dict.fromkeys(("li", "term"), _IN_LIST)


def has_crowded_tag(html: str) -> bool:
    """Return whether some tag has more than `MAX_ATTRIBUTES`. The parser compares each attribute of
    a tag with all before it, so a million of them take an hour."""
    for tag in _tags(html):
        rest = html[tag.end() :] if tag["endless"] else tag["rest"]
        if (
            len(rest) > 2 * MAX_ATTRIBUTES
            and sum(1 for _ in _ATTRIBUTE.finditer(rest)) > MAX_ATTRIBUTES
        ):
            return True
    return False


def flatten(html: str) -> tuple[str, bool]:
    """Replace tags that are nested too deep with a space; return the page and whether any were.
    Linear in the length and approximate: open elements are tracked without all of HTML's rules."""
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
    """Yield the tags of a page, except those inside comments, scripts and so on. The last may be
    `endless`, cut off by the end of the page."""
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
