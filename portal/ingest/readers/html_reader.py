"""Reader of an HTML file, in UTF-8, that yields its visible text as a browser parses it.

Records are lists of events, each `[kind, value]`, in reading order, after a first record:

    {"is_flattened": false}
    {"events": [["text", "…"], ["heading", 2], ["/heading", null], ["list", 1], …]}

`heading` (its level), `list` (1 for numbers, null for bullets, -1 for terms), `row`, `cell`
(columns and rows that it spans, whether it is a header), `table`, `caption`, `code` and `link` (its
address) have an end with a slash; `text`, `block` (a paragraph begins or ends), `break`, `image`
(its key, see `image_keys`) and `item` (whether it is a footnote, and its label, such as "3." or
"c.", null in lists without numbers) stand alone. `section` has an end.

What surrounds the content of a page is left out: navigation, tables of contents, and bars and
asides outside of its `<main>` or `<article>`. `html_nesting` explains `is_flattened`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from portal.ingest.readers.html_nesting import BLOCKS, MAX_ATTRIBUTES, flatten, has_crowded_tag
from portal.ingest.readers.image_keys import key_of
from portal.ingest.readers.list_numbers import letters, roman

Event = tuple[str, Any]

_EVENTS_A_RECORD = 2_000
_HIDDEN_TAGS = frozenset({
    "head", "title", "script", "style", "template", "noscript", "iframe", "object", "embed",
    "svg", "canvas", "audio", "video", "datalist", "select", "textarea",
    "annotation", "annotation-xml",
})  # fmt: skip
_NOT_DISPLAYED = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_INVISIBLE = re.compile(r"visibility\s*:\s*hidden", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(f"{_NOT_DISPLAYED.pattern}|{_INVISIBLE.pattern}", re.IGNORECASE)
# Classes that frameworks hide, and the navigation and line numbers of common generators.
_HIDDEN_CLASS = re.compile(
    r"""(?:^|\s)(?:sr-only|visually-?hidden|screen-reader-text|skip-link|headerlink|linenos?
    |linenodiv|nav(?:header|footer|bar|igation)?|docnav|breadcrumbs?|mw-(?:editsection|portlet)
    |page-?metadata
    )(?:\s|$)""",
    re.VERBOSE,
)
_CONTENTS_CLASS = re.compile(r"(?:^|\s)(?:toc|table-of-contents)(?:\s|$)")
_NAVIGATION = frozenset({"navigation", "search", "menu", "menubar", "contentinfo"})  # Roles.
_CONTENT = frozenset({"main", "article"})
_AROUND_CONTENT = "header, footer, aside, [role=banner], [role=contentinfo], [role=complementary]"
_MAX_AROUND_CONTENT = 1_000  # Pages with more have none worth leaving out.
_PERMALINK = re.compile(
    r"[¶#§🔗\uf0c1]?|[\^↑↩]\ufe0e?|(?:skip|jump) to\b.*|跳[到转至].*", re.IGNORECASE
)
_DECORATION = frozenset({"span", "i", "a"})  # Where `aria-hidden` means a copy or an icon.
_SUPERSCRIPTS = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_EXPONENT = re.compile(r"[+\u2212-]?\d{1,4}")
_HEADING = re.compile(r"h[1-6]")
_CODE = ("pre", "listing", "xmp", "plaintext")
_WITH_END = {
    **dict.fromkeys(("ul", "dl", "ol"), "list"),
    **dict.fromkeys(_CODE, "code"),
    "table": "table",
    "tr": "row",
    **dict.fromkeys(("td", "th"), "cell"),
    "caption": "caption",
    "portal-section": "section",  # A slide; no other source produces it.
    "a": "link",
}
_BEGINNINGS: Mapping[str, Event] = {
    **dict.fromkeys(BLOCKS, ("block", None)),
    **{tag: (_WITH_END[tag], None) for tag in (*_CODE, "table", "tr", "caption", "ul")},
    "portal-section": ("section", None),
    "dl": ("list", -1),
    "ol": ("list", 1),
    "dt": ("item", [False, None]),
    "br": ("break", None),
}
_ENDINGS: Mapping[str, Event] = {
    **dict.fromkeys((*BLOCKS, "li"), ("block", None)),
    **{tag: (f"/{kind}", None) for tag, kind in _WITH_END.items()},
}
_LIST_END: Event = ("/list", None)
_MAX_SPAN = 100  # Larger spans are a way to write a million cells.
_BOLD_STYLE = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)", re.IGNORECASE)
_TITLE: tuple[Event, Event] = ("heading", 1), ("/heading", None)
# Level 6, below the headings that are marked as such.
_BOLD_HEADING: tuple[Event, Event] = ("heading", 6), ("/heading", None)
_WORD_BULLET = re.compile(r"[A-Za-zØü]|[^\w\s]")
_WORD_MARK = re.compile(r"mso-list\s*:\s*ignore", re.IGNORECASE)
_MAX_BOLD_LINE = 80
_NO_BOLD_HEADING = re.compile(r"[。！!;；]|[.:,，、：]\s*$")
_WITH_WORDS = frozenset({"p", "div", "ul", "ol", "dl", "table", "pre", "blockquote"})
_INLINE = frozenset({"b", "strong", "span", "font", "o:p", "-text", "-comment"})
_MAX_INLINE = 8
_NO_LINE = frozenset({"table", "li", "dd", "dt", "blockquote"})
_NOTE = re.compile(r"(?:foot|end)note-|fn[-:]?\d")
_NOTE_NUMBER = re.compile(r"[(\[]?(\d{1,3}|[*†‡])[)\]]?")
_NUMBER = re.compile(r"\s*([+-]?[0-9]{1,6})(?![0-9])")
_STYLE_OF_NUMBERS = re.compile(
    r"list-style(?:-type)?\s*:[^;]*?\b(lower|upper)-(alpha|latin|roman)", re.IGNORECASE
)
_TYPE_OF_STYLE = {"alpha": "a", "latin": "a", "roman": "i"}


def read(file: BinaryIO, *, characters: int, events: int) -> Iterator[dict[str, Any]]:
    """Yield the records; end with an error above `characters`, `events` or attributes of a tag.
    Events have a limit of their own because tags without any text produce them too."""
    html = file.read().decode()
    if has_crowded_tag(html):
        yield {"error": "too_many", "what": "attributes", "limit": MAX_ATTRIBUTES}
        return
    html, is_flattened = flatten(html)
    try:
        tree = LexborHTMLParser(html)
    except SelectolaxError:
        # Any content is a valid page, so only memory can be the cause.
        yield {"error": "memory"}
        return
    yield {"is_flattened": is_flattened}
    root = tree.body or tree.root
    around: frozenset[int] | None = _around_content(tree)
    hidden = _hidden_style(html, root, around)
    if not any(kind == "text" and value.strip() for kind, value in _events(root, around, hidden)):
        around = None  # The page is only navigation.
    record: list[Event] = []
    for count, event in enumerate(_events(root, around, hidden), 1):
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


def fragment_events(html: str) -> list[Event]:
    """Return the events of HTML within another text, without leaving anything out. Empty for HTML
    with too many attributes in a tag."""
    if has_crowded_tag(html):
        return []
    tree = LexborHTMLParser(flatten(html)[0])
    return list(_events(tree.body or tree.root, None))


def _around_content(tree: LexborHTMLParser) -> frozenset[int]:
    """Return the ids of bars and asides outside of the content, if the page marks its content."""
    if tree.css_first("main, article, [role=main]") is None:
        return frozenset()
    found = tree.css(_AROUND_CONTENT)[:_MAX_AROUND_CONTENT]
    return frozenset(node.mem_id for node in found if _is_around_content(node))


def _is_around_content(node: LexborNode) -> bool:
    if "epub:type" in node.attributes or node.css_first("h1, main, article, [role=main]"):
        return False
    parent = node.parent
    while parent is not None and parent.tag not in _CONTENT:
        if parent.attributes.get("role") == "main":
            return False
        parent = parent.parent
    return parent is None


def _hidden_style(
    html: str, root: LexborNode | None, around: frozenset[int] | None
) -> re.Pattern[str]:
    """Return the pattern of styles that hide. Invisible text counts as visible if it is over a
    third of the page: some pages, such as WeChat's, are invisible until a script has run."""
    # Otherwise both patterns match the same, and the page need not be walked twice more.
    if not _INVISIBLE.search(html):
        return _HIDDEN_STYLE
    length, visible_length = (
        sum(len(value.strip()) for kind, value in _events(root, around, style) if kind == "text")
        for style in (_NOT_DISPLAYED, _HIDDEN_STYLE)
    )
    return _NOT_DISPLAYED if 2 * length > 3 * visible_length else _HIDDEN_STYLE


def _events(
    root: LexborNode | None,
    around: frozenset[int] | None,
    hidden: re.Pattern[str] = _HIDDEN_STYLE,
) -> Iterator[Event]:
    """Yield events, those of the whole page if `around` is None. Not recursive, because a file may
    be nested deeper than Python's stack."""
    waiting: list[tuple[LexborNode, Event | None]] = [(root, None)] if root is not None else []
    lists: list[_Numbers | None] = []
    while waiting:
        node, end = waiting.pop()
        if end is not None:
            yield _leave(lists, end)
            continue
        following = node.next
        if following is not None and node is not root:
            waiting.append((following, None))
        if node.is_text_node:
            yield "text", node.text_content or ""
        elif node.is_element_node and not _is_unseen(node, around, hidden):
            if shown := _exponent(node) or _bullet(node) or _note_mark(node):
                yield "text", shown
                continue
            if node.tag == "img" and (key := key_of(node.attributes.get("src") or "")):
                yield "image", key
            heading = _heading(node) if around is not None and node.tag in {"p", "div"} else None
            begin, closing = heading or _enter(lists, node)
            yield from (event for event in [begin] if event)
            if closing is not None:
                waiting.append((node, closing))
            if node.first_child is not None:
                waiting.append((node.first_child, None))


def _is_unseen(node: LexborNode, around: frozenset[int] | None, hidden: re.Pattern[str]) -> bool:
    tag = node.tag or ""
    if tag in _HIDDEN_TAGS:
        return True
    attributes = node.attributes
    if "hidden" in attributes or hidden.search(attributes.get("style") or ""):
        return True
    if around is None:
        return False
    if tag == "nav" or node.mem_id in around:
        return True
    if tag == "button":
        return node.parent is not None and node.parent.tag in _CODE
    return bool(attributes) and (
        attributes.get("role") in _NAVIGATION
        or (tag in _DECORATION and attributes.get("aria-hidden") == "true")
        or (tag == "a" and _is_beside_content(node))
        or (tag in {"ol", "ul"} and attributes.get("id") == "breadcrumbs")
        or _is_named_unseen(node, attributes.get("class") or "")
    )


def _is_named_unseen(node: LexborNode, names: str) -> bool:
    """Return whether an element's classes hide it. A table of contents counts as hidden only if it
    links to places in the page."""
    if not names:
        return False
    if _CONTENTS_CLASS.search(names):
        link = node.css_first("a[href]")
        return link is not None and "#" in (link.attributes.get("href") or "")
    return bool(_HIDDEN_CLASS.search(names))


def _is_beside_content(link: LexborNode) -> bool:
    """Return whether a link leads to its own heading, from a note to its place, past a menu, or to
    the page in another language."""
    attributes = link.attributes
    if not (attributes.get("href") or "").startswith("#"):
        return "hreflang" in attributes and "lang" in attributes
    text = link.first_child
    if text is None or not text.is_text_node or text.next is not None:
        return False
    return bool(_PERMALINK.fullmatch((text.text_content or "").strip()))


def _heading(node: LexborNode) -> tuple[Event, Event] | None:
    """Return the ends of a heading written as a paragraph: Word's title, or a bold line."""
    if "MsoTitle" in (node.attributes.get("class") or "").split():
        return _TITLE
    return _BOLD_HEADING if _is_bold_heading(node) else None


def _is_bold_heading(node: LexborNode, *, may_lead: bool = True) -> bool:
    """Return whether a block is a bold line above text that is not bold, or above such a line: a
    heading or a title, written without styles."""
    line = _bold_line(node)
    if not line or len(line) > _MAX_BOLD_LINE or _NO_BOLD_HEADING.search(line):
        return False
    parent = node.parent
    while parent is not None:
        if parent.tag in _NO_LINE:
            return False
        parent = parent.parent
    below = node.next
    while below is not None and not (below.text() or "").strip():
        below = None if below.tag in {"img", "hr"} else below.next
    if below is None or below.tag not in _WITH_WORDS:
        return False
    return not _bold_line(below) or (may_lead and _is_bold_heading(below, may_lead=False))


def _bold_line(node: LexborNode) -> str:
    """Return the text of a block that is a single line, all in bold; empty for other blocks."""
    inner: LexborNode | None = node
    while inner is not None:
        if inner.tag in {"b", "strong"} or _BOLD_STYLE.search(inner.attributes.get("style") or ""):
            is_line = inner.css_first("br, img, a, p, div, table") is None
            return inner.text().strip() if is_line else ""
        children = list(islice(inner.iter(include_text=True), _MAX_INLINE))
        if any(child.tag not in _INLINE for child in children):
            return ""
        with_words = [child for child in children if child.text().strip()]
        inner = with_words[0] if len(with_words) == 1 else None
    return ""


def _exponent(node: LexborNode) -> str | None:
    """Return the exponent in a `<sup>` as superscript digits, so that 10⁶ does not read as 106."""
    child = node.first_child if node.tag == "sup" else None
    if child is None or child.next is not None or not child.is_text_node:
        return None
    text = (child.text_content or "").strip()
    return text.translate(_SUPERSCRIPTS) if _EXPONENT.fullmatch(text) else None


def _note_mark(node: LexborNode) -> str | None:
    """Return the number of a link to a note in brackets, so that "June.1" does not read as such."""
    if node.tag != "a" or "#" not in (node.attributes.get("href") or ""):
        return None
    number = _NOTE_NUMBER.fullmatch(node.text().strip())
    around = node.parent, node.first_child
    types = f"{node.attributes.get('role')} {node.attributes.get('epub:type')}"
    if number and ("noteref" in types or any(one and one.tag == "sup" for one in around)):
        return f"[{number[1]}]"
    return None


def _bullet(node: LexborNode) -> str | None:
    """Return a bullet for a letter that a symbol font shows as one, as Word writes lists."""
    if node.tag != "span" or not _WORD_MARK.search(node.attributes.get("style") or ""):
        return None
    return "• " if _WORD_BULLET.fullmatch(node.text().strip()) else None


class _Numbers:
    """The labels of a list's items, as a browser counts them, or as `portal-label` gives them,
    which only the reader of DOCX produces."""

    def __init__(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._type = _type_of_numbers(attributes)
        self._step = -1 if "reversed" in attributes else 1
        first = _NUMBER.match(attributes.get("start") or "")
        if first:
            self._next = int(first[1])
        else:
            self._next = sum(item.tag == "li" for item in node.iter()) if self._step < 0 else 1

    def label(self, item: LexborNode) -> str:
        """Return the label of the next item, and count it."""
        attributes = item.attributes
        given = _NUMBER.match(attributes.get("value") or "")
        number = int(given[1]) if given else self._next
        self._next = number + self._step
        if "portal-label" in attributes:
            return attributes["portal-label"] or ""
        kind = _type_of_numbers(attributes) or self._type
        text = {"a": letters, "i": roman}.get(kind.lower(), str)(number)
        return f"{text.upper() if kind.isupper() else text}."


def _type_of_numbers(attributes: Mapping[str, str | None]) -> str:
    """Return the type of a list's or an item's numbers: a, A, i, I, or empty for digits."""
    style = _STYLE_OF_NUMBERS.search(attributes.get("style") or "")
    if style is None:
        return attributes.get("type") or ""
    kind = _TYPE_OF_STYLE[style[2].lower()]
    return kind.upper() if style[1].lower() == "upper" else kind


def _enter(lists: list[_Numbers | None], node: LexborNode) -> tuple[Event | None, Event | None]:
    """Return the events of an element's ends; add a list to the open ones."""
    begin, closing = _beginning(node, lists), _ending(node)
    if closing == _LIST_END:
        lists.append(_Numbers(node) if node.tag == "ol" else None)
    return begin, closing


def _leave(lists: list[_Numbers | None], end: Event) -> Event:
    """Return the event of an element's end; remove a list from the open ones."""
    if end == _LIST_END:
        lists.pop()
    return end


def _beginning(node: LexborNode, lists: list[_Numbers | None]) -> Event | None:
    tag = node.tag or ""
    if tag in _BEGINNINGS:
        return _BEGINNINGS[tag]
    if tag in {"td", "th"}:
        return "cell", [_span(node, "colspan"), _span(node, "rowspan"), tag == "th"]
    if tag == "li":
        numbers = lists[-1] if lists else None
        is_note = bool(_NOTE.match(node.attributes.get("id") or ""))
        return "item", [is_note, numbers.label(node) if numbers else None]
    if tag == "a":
        return "link", node.attributes.get("href") or ""
    if tag == "img":
        return "text", node.attributes.get("alt") or ""
    return ("heading", int(tag[1])) if _HEADING.fullmatch(tag) else None


def _ending(node: LexborNode) -> Event | None:
    tag = node.tag or ""
    if tag in _ENDINGS:
        return _ENDINGS[tag]
    return ("/heading", None) if _HEADING.fullmatch(tag) else None


def _span(node: LexborNode, name: str) -> int:
    value = node.attributes.get(name) or ""
    return min(int(value), _MAX_SPAN) if re.fullmatch(r"[1-9][0-9]{0,3}", value) else 1
