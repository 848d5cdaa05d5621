"""Reader of a Word document (DOCX) that yields a simple web page.

    {"html": "…", "has_formulas": false, "has_headers": true}

`has_headers` is true if headers or footers, which mammoth drops, have words that the text lacks.

mammoth converts styles by their meaning. Notes are at the end of the sections that refer to them.
The archive is checked first, for parts that unpack without end or declare entities. mammoth opens
nothing outside of the file, and no pictures.
"""

from __future__ import annotations

import re
import xml.dom.expatbuilder  # noqa: F401 - minidom imports it when it parses, which is too late
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

import mammoth
from mammoth.docx import office_xml
from mammoth.docx.xmlparser import XmlElement, XmlText

from portal.ingest.readers import archives
from portal.ingest.readers.docx_numbering import Numbering
from portal.ingest.readers.image_keys import address_of

# Elements with text that mammoth skips, such as the result of a field, and one that it reads.
_SKIPPED = frozenset({"w:fldSimple", "w:ruby", "w:rubyBase", "w:dir", "w:bdo"})
_READ = "w:smartTag"
_parse_xml = office_xml.read
# The label of a numbered paragraph at the start of its text: mammoth forgets what Word shows.
_LABEL = re.compile("\ufdd0([^\ufdd1]*)\ufdd1")
_LABELLED_ITEM = re.compile(
    "<li>(?P<tags>(?:<(?!ol|ul|li|/li)[^>]*>)*+)\ufdd0(?P<label>[^\ufdd1]*)\ufdd1"
)
_PLAIN_LABEL = re.compile(r"([0-9]{1,6})\.")
_DELETED_MARKS = ("w:del", "w:moveFrom")
# Words and pictures are in these, unless they were deleted or are in a text box.
_AROUND_WORDS = frozenset({"w:r", "w:hyperlink", "w:ins", "w:sdt", "w:sdtContent", _READ})
_SHOWN = frozenset({"w:t", "w:drawing", "w:pict", "w:object"})
_NO_TEXT_KEPT = "oMath"  # mammoth's name for formulas, which it leaves out.
_HEADER_PART = re.compile(r"word/(?:header|footer)\d*\.xml")
_MAX_HEADER_BYTES = 1 << 20
_PARAGRAPH_END = re.compile(r"</w:p>")
_TEXT = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>")
_WORDS = re.compile(r"[^\W\d_]{2}")
_PAGE_WORDS = re.compile(r"\b(?:page|of)\b|[第共页頁]", re.IGNORECASE)
_TAG = re.compile(r"<(/?)\w+[^>]*?(/?)>")
_SECTION = re.compile(r"<h[1-6]>|<p><strong>[^<]*</strong></p>")
_NOTES = re.compile(r'<ol>(?=<li id="(?:foot|end)note-)')
_NOTE = re.compile(r'(?=<li id="(?:foot|end)note-)')
_REFERENCE = re.compile(r'id="(?:foot|end)note-ref-\d+">\[(\d+)\]</a>')
_COMMENTS = '<dl><dt id="comment-'
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='标题 {level}'] => h{level}:fresh" for level in range(1, 7)),
        *(f"p[style-name='heading {level}'] => h6:fresh" for level in range(7, 10)),
        *(
            f"p[style-name='{name}'] => pre:separator('\\n')"
            for name in ("HTML Preformatted", "Preformatted Text", "Source Code", "Code")
        ),
        # Word's own styles for nested lists are lists of one level each, which are only indented.
        *(
            f"p[style-name='List {name} {depth}']:{kind}-list(1) => "
            f"{'ul|ol > li > ' * (depth - 1)}{tag} > li:fresh"
            for name in ("Bullet", "Number")
            for depth in range(2, 6)
            for kind, tag in (("unordered", "ul"), ("ordered", "ol"))
        ),
        "comment-reference => sup",
    ]
)


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the one record, or an error: characters, or one of `archives.read_checked`."""
    return archives.read_checked(file, lambda: _page(file, characters))


def _page(file: BinaryIO, characters: int) -> Iterator[dict[str, Any]]:
    office_xml.read = partial(_parse_part, numbering=Numbering())
    result = mammoth.convert_to_html(
        file,
        style_map=_STYLES,
        include_embedded_style_map=False,  # A style map in the file could hide its text.
        convert_image=mammoth.images.img_element(_image),
    )
    if len(result.value) > 4 * characters:  # Most of it is tags in the worst case.
        yield {"error": "characters"}
        return
    html = _LABEL.sub(r"\1", _LABELLED_ITEM.sub(_label_item, result.value))
    yield {
        "html": _with_notes_in_sections(html),
        "has_formulas": any(_NO_TEXT_KEPT in message.message for message in result.messages),
        "has_headers": _has_headers(file, html),
    }


def _label_item(item: re.Match[str]) -> str:
    """Return the start of an item with its label as an attribute."""
    label = item["label"].strip()
    number = _PLAIN_LABEL.fullmatch(label)
    name, value = ("value", number[1]) if number else ("portal-label", label)
    value = value.replace('"', "&quot;")
    return f'<li {name}="{value}">{item["tags"]}'


def _parse_part(file: BinaryIO, *, numbering: Numbering) -> Any:
    """Return the root of a part with the labels of its paragraphs, and with elements that mammoth
    would skip as one that it reads."""
    root = _parse_xml(file)
    numbering.add_part(root)
    in_cells: set[int] = set()
    for element in _elements(root):
        element.name = _READ if element.name in _SKIPPED else element.name
        if element.name == "w:tc":
            in_cells.update(map(id, element.children))
        elif element.name == "w:p":
            _label_paragraph(element, numbering, is_in_cell=id(element) in in_cells)
    return root


def _elements(root: XmlElement) -> Iterator[XmlElement]:
    """Yield an element and those in it, in their order."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += (each for each in reversed(element.children) if isinstance(each, XmlElement))


def _label_paragraph(paragraph: XmlElement, numbering: Numbering, *, is_in_cell: bool) -> None:
    """Put its label before the text of a paragraph. One that shows nothing counts, but only in a
    cell, such as one for the number of its row, is its label worth reading."""
    mark = paragraph.find_child_or_null("w:pPr").find_child_or_null("w:rPr")
    if any(map(mark.find_child, _DELETED_MARKS)) or (found := numbering.label(paragraph)) is None:
        return
    label, has_gap = found
    text = XmlText(f"\ufdd0{label}{' ' if label and has_gap else ''}\ufdd1")
    shown = _first_shown(paragraph)
    if shown is not None and shown.name == "w:t":
        shown.children.insert(0, text)
    elif shown is not None or (is_in_cell and label):
        text = text if shown else XmlText(label)
        paragraph.children.insert(0, XmlElement("w:r", {}, [XmlElement("w:t", {}, [text])]))


def _first_shown(paragraph: XmlElement) -> XmlElement | None:
    """Return the first text or picture of a paragraph."""
    waiting = paragraph.children[::-1]
    while waiting:
        element = waiting.pop()
        if not isinstance(element, XmlElement):
            continue
        if element.name in _SHOWN and (element.children or element.name != "w:t"):
            return element
        if element.name in _AROUND_WORDS:
            waiting += element.children[::-1]
    return None


def _with_notes_in_sections(html: str) -> str:
    """Return the page with its notes, which mammoth writes at the end, where the section ends that
    refers to them."""
    begin = _NOTES.search(html)
    if begin is None:
        return html
    end = html.find(_COMMENTS, begin.end()) if _COMMENTS in html else len(html)
    notes = dict(enumerate(_NOTE.split(html[begin.end() : end].removesuffix("</ol>"))[1:], 1))
    parts: list[str] = []
    numbers: list[int] = []
    for block in _blocks(html[: begin.start()]):
        if _SECTION.match(block):
            parts.append(_list_notes(notes, numbers))
            numbers = []
        parts.append(block)
        numbers += map(int, _REFERENCE.findall(block))
    return "".join([*parts, _list_notes(notes, [*numbers, *notes]), html[end:]])


def _list_notes(notes: dict[int, str], numbers: Iterable[int]) -> str:
    """Return the notes with these numbers as a list, and remove them from `notes`."""
    taken = {number: notes.pop(number) for number in numbers if number in notes}
    return f'<ol start="{min(taken)}">{"".join(taken.values())}</ol>' if taken else ""


def _blocks(html: str) -> Iterator[str]:
    """Yield the outermost elements of a page."""
    start = depth = 0
    for tag in _TAG.finditer(html):
        depth += 0 if tag[2] else -1 if tag[1] else 1
        if not depth:
            yield html[start : tag.end()]
            start = tag.end()
    yield html[start:]


def _image(image: Any) -> dict[str, str]:
    """Return the attributes of an image: its key, without its bytes."""
    try:
        with image.open() as part:
            address = address_of(part.name)
    except (KeyError, OSError, AttributeError):
        address = ""  # It is missing, or not in the file.
    return {"alt": image.alt_text or "", "src": address}


def _has_headers(source: BinaryIO, html: str) -> bool:
    """Return whether a header or footer holds more than a page number and text of the document."""
    with zipfile.ZipFile(source) as archive:
        for part in archive.infolist():
            if not _HEADER_PART.fullmatch(part.filename):
                continue
            with archive.open(part) as file:
                xml = file.read(_MAX_HEADER_BYTES).decode("utf-8", "replace")
            for paragraph in _PARAGRAPH_END.split(xml):
                words = "".join(_TEXT.findall(paragraph)).strip()
                if _WORDS.search(_PAGE_WORDS.sub("", words)) and words not in html:
                    return True
    return False
