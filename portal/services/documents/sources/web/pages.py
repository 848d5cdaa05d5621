"""Web pages as files of a source: their names, and whether they have changed."""

from __future__ import annotations

import hashlib
import html
import json
import mimetypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Self
from urllib.parse import unquote

import httpx

from portal.domain.documents.sources import Opened, SourceItem, Unchanged
from portal.services.documents.sources.kinds import SourceContext
from portal.services.documents.sources.web.addresses import check_source
from portal.services.documents.sources.web.downloading import Download, Downloader, Validators
from portal.settings.smaller_sections import SourceSettings
from portal.text.titles import MAX_TITLE_CHARACTERS

_HTML_TYPES = ("text/html", "application/xhtml+xml")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_HEAD_BYTES = 64 * 1024
_TITLE = re.compile(r"<title\b[^<>]*>([^<]*)</title", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
# Hidden parts, which many servers write differently for each request. A match ends where the next
# may begin, so that no page takes long.
_HIDDEN = re.compile(rb"(<!--|-->|</?(?:script|style)\b[^<>]*>)", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Stamp:
    """The last known state of a page: its date in a sitemap or feed, the validators from its
    server, and a hash of its words or, for another file, of its bytes."""

    listed: str = ""
    etag: str = ""
    last_modified: str = ""
    words: str = ""

    @classmethod
    def parse(cls, text: str | None) -> Stamp:
        return cls(*json.loads(text)) if text else cls()

    def __str__(self) -> str:
        return json.dumps([self.listed, self.etag, self.last_modified, self.words])


@dataclass(frozen=True, slots=True)
class PageSource:
    """A source whose files are web pages."""

    downloader: Downloader

    @contextmanager
    def open(self, item: SourceItem, known: str | None) -> Iterator[Opened | Unchanged]:
        """Open a page unless its date, its server or its words show that it is unchanged. Raises
        PageUnavailable, PageGone."""
        before = Stamp.parse(known)
        if known and item.stamp and item.stamp == before.listed:
            yield Unchanged(known)
            return
        validators = Validators(before.etag, before.last_modified)
        with self.downloader.get(item.path, validators) as page:
            if page is None:
                yield Unchanged(str(replace(before, listed=item.stamp)))
                return
            words, sent = _words_hash(page), page.validators
            stamp = Stamp(item.stamp, sent.etag, sent.last_modified, words)
            if words and words == before.words:
                # The next request sends these validators, and may get a short answer.
                yield Unchanged(str(stamp))
                return
            title = item.title or _title(page)
            yield Opened(page.stream, file_name(page.url, page.content_type), str(stamp), title)


@dataclass(frozen=True, slots=True)
class PageListSource(PageSource):
    """A source whose pages are listed by another file on the web."""

    url: httpx.URL
    settings: SourceSettings

    @classmethod
    def at(cls, context: SourceContext, address: str) -> Self:
        """Return the source at an address. Raises InvalidInput for one that is not allowed."""
        settings = context.settings.sources
        return cls(Downloader(context), check_source(settings, address), settings)


def file_name(url: httpx.URL, content_type: str) -> str:
    """Return a file name with the suffix of the page's type."""
    name = unquote(PurePosixPath(url.path).name) or url.host
    kind = content_type.partition(";")[0].strip().lower()
    suffix = PurePosixPath(name).suffix.lower()
    if kind in _HTML_TYPES:
        return name if suffix in _HTML_SUFFIXES else f"{name}.html"
    if not suffix and (guessed := mimetypes.guess_extension(kind)):
        return f"{name}{guessed}"
    return name


def _is_html(page: Download) -> bool:
    return page.content_type.lower().startswith(_HTML_TYPES)


def _words_hash(page: Download) -> str:
    """Return a hash of the words that a reader sees on a web page, or of the bytes of another file,
    so that an unreadable file is not read again until it changes."""
    if not _is_html(page):
        digest = hashlib.sha256()
        for piece in iter(lambda: page.stream.read(_HEAD_BYTES), b""):
            digest.update(piece)
        page.stream.seek(0)
        return digest.hexdigest()
    shown = b" ".join(_TAG.sub(b" ", _shown(_bytes_of(page.stream))).split())
    return hashlib.sha256(shown).hexdigest()


def _shown(content: bytes) -> bytes:
    pieces = []
    ends_with = b""
    for piece in _HIDDEN.split(content):
        lowered = piece[:8].lower()
        if ends_with:
            if lowered.startswith(ends_with):
                ends_with = b""
        elif lowered.startswith(b"<!--"):
            ends_with = b"-->"
        elif lowered.startswith((b"<script", b"<style")):
            ends_with = b"</script" if lowered.startswith(b"<sc") else b"</style"
        else:
            pieces.append(piece)
    return b"".join(pieces)


def _title(page: Download) -> str:
    if not _is_html(page):
        return ""
    head = _bytes_of(page.stream, _HEAD_BYTES)
    declared = _CHARSET.search(page.content_type.encode()) or _CHARSET.search(head)
    try:
        text = head.decode(declared[1].decode() if declared else "utf-8", "replace")
    except LookupError:
        text = head.decode("utf-8", "replace")
    found = _TITLE.search(text)
    title = " ".join(html.unescape(found[1]).split()) if found else ""
    return title[:MAX_TITLE_CHARACTERS]


def _bytes_of(stream: IO[bytes], max_bytes: int = -1) -> bytes:
    stream.seek(0)
    content = stream.read(max_bytes)
    stream.seek(0)
    return content
