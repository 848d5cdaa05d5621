"""XML of feeds and sitemaps: decoded, unpacked and parsed within limits, without entities."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from typing import IO
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, ParseError

import httpx

from portal.errors import PageUnavailable
from portal.services.documents.sources.web.addresses import MAX_URL_CHARACTERS
from portal.services.documents.sources.web.downloading import Downloader, inflate, write_limited

_MAX_BYTES = 10 * 1024 * 1024
# Ten tags for each of the 50,000 pages that a sitemap may have, and some more; a parsed element
# takes 150 bytes.
_MAX_TAGS = 600_000
_HEAD_BYTES = 300
_PIECE_BYTES = 64 * 1024
_GZIP = b"\x1f\x8b"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_DECLARATION = re.compile(rb"\s*<\?xml[^<>]*?encoding\s*=\s*[\"']([\w.-]+)[\"'][^<>]*\?>")


def read_xml(downloader: Downloader, address: str) -> Element:
    """Download an XML file, gzipped or not, and return its root. Raises PageUnavailable, also for
    one that declares entities."""
    with downloader.get(address, max_bytes=_MAX_BYTES) as page:
        if page is None:  # An invalid 304: the request was not conditional.
            raise PageUnavailable("it is damaged")
        content = _unpack(page.stream)
    return parse_xml(content)


def parse_xml(content: bytes) -> Element:
    """Return the root of an XML file. Raises PageUnavailable."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    if content.count(b"<") > _MAX_TAGS:
        raise PageUnavailable("it has too many entries")
    declaration = _DECLARATION.match(content[:_HEAD_BYTES])
    text: bytes | str = content
    try:
        if declaration and declaration[1].lower() not in (b"utf-8", b"utf8", b"utf-16"):
            # The parser knows few encodings; GBK is not one of them.
            text = content[declaration.end() :].decode(declaration[1].decode())
        root: Element = fromstring(text, forbid_dtd=False)
    except DefusedXmlException as error:
        raise PageUnavailable("it declares entities, which are not read") from error
    except (ParseError, ValueError, LookupError) as error:
        raise PageUnavailable("it is not valid XML") from error
    return root


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def children(element: Element, name: str) -> Iterator[Element]:
    return (child for child in element if local_name(child) == name)


def base_of(element: Element, base: str) -> str:
    """Return the base of the addresses in an element: its `xml:base`, resolved against `base`, or
    just `base` if the result is not an address."""
    try:
        joined = urljoin(base, element.get(_BASE, "").strip())
        httpx.URL(joined)
    except (ValueError, httpx.InvalidURL):
        return base
    return joined if len(joined) <= MAX_URL_CHARACTERS else base


def find_with_base(
    root: Element, names: tuple[str, ...], base: str
) -> Iterator[tuple[Element, str]]:
    """Yield the elements with these names in order, each with the base of the addresses in it.
    `base` is the address of the file."""
    waiting = [(root, base)]
    while waiting:  # Files may be nested deeper than Python can recurse.
        element, around = waiting.pop()
        own = base_of(element, around) if element.get(_BASE) else around
        if local_name(element) in names:
            yield element, own
        waiting.extend((child, own) for child in reversed(element))


def text_of(element: Element, name: str) -> str:
    """Return the text of the first child with a name, or an empty text."""
    found = next(children(element, name), None)
    return (found.text or "").strip() if found is not None else ""


def _unpack(stream: IO[bytes]) -> bytes:
    head = stream.read(len(_GZIP))
    stream.seek(0)
    if head != _GZIP:
        return stream.read()
    with tempfile.SpooledTemporaryFile(max_size=_MAX_BYTES) as whole:
        pieces = iter(lambda: stream.read(_PIECE_BYTES), b"")
        write_limited(inflate(pieces), whole, _MAX_BYTES)
        return whole.read()
