"""Downloads for one run of a source, within the limits per host and of its robots.txt."""

from __future__ import annotations

import ssl
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, TYPE_CHECKING

import httpcore
import httpx

from portal.errors import N_, Message, PageGone, PageUnavailable, verbatim
from portal.services.documents.intake import disk_space
from portal.services.documents.sources.kinds import SourceContext
from portal.services.documents.sources.web.addresses import CheckedNetwork, Resolver, check_url

if TYPE_CHECKING:
    from protego import Protego

AGENT = "KnowledgePortal"
"""The name that robots.txt may give rules for."""
_MAX_REDIRECTS = 5
_MAX_ROBOTS_BYTES = 500 * 1024  # As RFC 9309 asks for.
_MAX_CRAWL_DELAY_S = 60.0
_MAX_FAILURES = 3
_IN_MEMORY_BYTES = 1024 * 1024
_PIECE_BYTES = 64 * 1024
_MB = 1024 * 1024
_REDIRECTS = {
    HTTPStatus.MOVED_PERMANENTLY,
    HTTPStatus.FOUND,
    HTTPStatus.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT,
}
_UNKNOWN_AUTHORITY = N_("its certificate is not from a known authority")
_ANOTHER_HOST = N_("its certificate is for another host")
# By the code of OpenSSL (X509_V_ERR_*).
_CERTIFICATE_REASONS = {
    9: N_("its certificate is not valid yet"),
    10: N_("its certificate has expired"),
    **dict.fromkeys((18, 19, 20, 21), _UNKNOWN_AUTHORITY),
    **dict.fromkeys((62, 64), _ANOTHER_HOST),
}
_TOO_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a page, for a conditional request."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A page: its address after redirects, its declared type, and its bytes."""

    url: httpx.URL
    content_type: str
    validators: Validators
    stream: IO[bytes]


class Downloader:
    """Loads pages one after the other. Raises PageUnavailable for those that it cannot load."""

    def __init__(self, context: SourceContext, *, resolve: Resolver | None = None) -> None:
        self._context = context
        self._settings = context.settings.sources
        self._network = CheckedNetwork(self._settings.private_networks, resolve)
        authorities = httpx.create_ssl_context(trust_env=False)
        if self._settings.ca_file:
            authorities.load_verify_locations(self._settings.ca_file)
        self._pool = httpcore.ConnectionPool(
            ssl_context=authorities,
            # Each request connects again, so that its address is checked.
            max_keepalive_connections=0,
            network_backend=self._network,
        )
        self._robots: dict[str, Protego | PageUnavailable | None] = {}
        self._pages: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()

    @contextmanager
    def get(
        self, address: str, known: Validators = Validators(), *, max_bytes: int | None = None
    ) -> Iterator[Download | None]:
        """Load a page; yield None if it has not changed since `known`. Redirects are followed to
        allowed addresses. Raises PageUnavailable, and PageGone for status 410."""
        room = disk_space.temporary_dir(self._context.settings)
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, dir=str(room)) as stream:
            url = check_url(self._settings, address)
            headers = _conditions(known)
            if max_bytes is None:  # Sitemaps and feeds have their own limits.
                self._count_page(url.host)
            limit = max_bytes or self._context.settings.max_upload_bytes
            yield self._get(url, headers, stream, limit)

    def _get(
        self, url: httpx.URL, headers: Mapping[str, str], stream: IO[bytes], max_bytes: int
    ) -> Download | None:
        for _ in range(_MAX_REDIRECTS + 1):
            delay_s = self._check_robots(url)
            with self._request(url, headers, delay_s) as response:
                if response.status in _REDIRECTS:
                    url = self._read_redirect(url, response)
                    continue
                if response.status == HTTPStatus.NOT_MODIFIED:
                    return None
                _check_status(response.status)
                self._read(response, url, stream, max_bytes)
                validators = Validators(
                    _header(response, "etag"), _header(response, "last-modified")
                )
                return Download(url, _header(response, "content-type"), validators, stream)
        raise PageUnavailable("it is redirected more than %(max)s times", max=_MAX_REDIRECTS)

    def _read_redirect(self, url: httpx.URL, response: httpcore.Response) -> httpx.URL:
        try:
            target = check_url(self._settings, _header(response, "location"), base=url)
        except PageUnavailable as error:
            reason = error.reason
            raise PageUnavailable(
                "it is redirected to an address that is refused: %(reason)s", reason=reason
            ) from error
        if url.scheme == "https" and target.scheme == "http":
            raise PageUnavailable("it is redirected from https to http")
        return target

    @contextmanager
    def _request(
        self, url: httpx.URL, headers: Mapping[str, str], delay_s: float
    ) -> Iterator[httpcore.Response]:
        """Request an address when it is the host's turn, within the limits of the host."""
        host = url.host
        self._check_limits(host)
        self._wait(self._context.take_turn(host, delay_s))
        self._network.allow(self._settings.timeout_s)
        sent = {"User-Agent": AGENT, "Accept-Encoding": "gzip", "Accept": "*/*", **headers}
        try:
            with self._pool.stream("GET", str(url), headers=list(sent.items())) as response:
                if response.status in _TOO_BUSY:
                    self._failures[host] = _MAX_FAILURES
                else:
                    self._failures[host] = 0
                yield response
        except httpcore.TimeoutException as error:
            self._failures[host] += 1
            seconds = self._settings.timeout_s
            raise PageUnavailable("its server took longer than %(num)s s", num=seconds) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            self._failures[host] += 1
            reason = _certificate_reason(error) or N_(
                "its server cannot be reached (%(error)s)", error=type(error).__name__
            )
            raise PageUnavailable(reason) from error

    def _count_page(self, host: str) -> None:
        max_pages = self._settings.max_pages
        if self._pages[host] >= max_pages:
            raise PageUnavailable(
                "one sync loads at most %(max)s pages from a server", max=max_pages
            )
        self._pages[host] += 1

    def _check_limits(self, host: str) -> None:
        settings = self._settings
        if self._failures[host] >= _MAX_FAILURES:
            raise PageUnavailable(
                "its server is too busy or does not answer; it is tried again in the next sync"
            )
        if self._bytes[host] >= settings.max_mb * _MB:
            raise PageUnavailable(
                "one sync loads at most %(max)s MB from a server", max=settings.max_mb
            )

    def _wait(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        while (left_s := ends_at - time.monotonic()) > 0:
            if self._context.should_stop():
                raise PageUnavailable("the worker was stopped")
            time.sleep(min(left_s, 0.2))

    def _read(
        self, response: httpcore.Response, url: httpx.URL, stream: IO[bytes], max_bytes: int
    ) -> None:
        """Write the decompressed body to a stream, within the limits on both sizes."""
        declared = _header(response, "content-length")
        if declared.isdecimal() and int(declared) > max_bytes:
            raise _too_large(max_bytes)
        encoding = _header(response, "content-encoding").lower()
        pieces = self._count_bytes(response, url.host)
        if encoding in ("gzip", "x-gzip"):
            pieces = inflate(pieces)
        elif encoding not in ("", "identity"):
            raise PageUnavailable("its encoding is not supported")
        write_limited(pieces, stream, max_bytes)

    def _count_bytes(self, response: httpcore.Response, host: str) -> Iterator[bytes]:
        for piece in response.iter_stream():
            self._network.remaining_s()
            self._bytes[host] += len(piece)
            if self._bytes[host] > self._settings.max_mb * _MB:
                self._check_limits(host)
            if self._context.should_stop():
                raise PageUnavailable("the worker was stopped")
            yield piece

    def _check_robots(self, url: httpx.URL) -> float:
        """Return the time between two requests to a host. Raises PageUnavailable for a page that
        its robots.txt forbids."""
        origin = str(url.copy_with(raw_path=b"/"))
        if origin not in self._robots:
            try:
                self._robots[origin] = self._read_robots(f"{origin}robots.txt")
            except PageUnavailable as error:
                self._robots[origin] = error
        rules = self._robots[origin]
        if isinstance(rules, PageUnavailable):
            raise rules
        if rules is None:
            return self._settings.delay_s
        if not rules.can_fetch(str(url), AGENT):
            raise PageUnavailable("the robots.txt of its server forbids it")
        asked_s = float(rules.crawl_delay(AGENT) or 0)
        return max(self._settings.delay_s, min(asked_s, _MAX_CRAWL_DELAY_S))

    def _read_robots(self, address: str) -> Protego | None:
        """Return the rules of a host, or None if it has none. Raises PageUnavailable."""
        from protego import Protego

        url = check_url(self._settings, address)
        for _ in range(_MAX_REDIRECTS + 1):
            with self._request(url, {}, self._settings.delay_s) as response:
                if response.status in _REDIRECTS:
                    url = self._read_redirect(url, response)
                    continue
                if response.status not in _TOO_BUSY and 400 <= response.status < 500:  # noqa: PLR2004
                    return None
                _check_status(response.status, N_("the robots.txt of its server cannot be read"))
                with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as stream:
                    self._read(response, url, stream, _MAX_ROBOTS_BYTES)
                    stream.seek(0)
                    return Protego.parse(stream.read().decode("utf-8", "replace"))
        raise PageUnavailable("the robots.txt of its server cannot be read")


def inflate(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip, in pieces that stay small however well it was compressed. Raises
    PageUnavailable."""
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        for piece in pieces:
            left = piece
            while left and not inflater.eof:
                yield inflater.decompress(left, _PIECE_BYTES)
                left = inflater.unconsumed_tail
        while rest := inflater.decompress(b"", _PIECE_BYTES):
            yield rest
    except zlib.error as error:
        raise PageUnavailable("it is damaged") from error
    if not inflater.eof:
        raise PageUnavailable("it is damaged")


def write_limited(pieces: Iterable[bytes], stream: IO[bytes], max_bytes: int) -> None:
    """Write pieces to a stream and rewind it. Raises PageUnavailable for more than `max_bytes`."""
    written = 0
    for piece in pieces:
        written += len(piece)
        if written > max_bytes:
            raise _too_large(max_bytes)
        stream.write(piece)
    stream.seek(0)


def _check_status(status: int, reason: Message | None = None) -> None:
    if status == HTTPStatus.GONE:
        raise PageGone
    if status != HTTPStatus.OK:
        raise PageUnavailable(reason or N_("its server answers %(status)s", status=status))


def _conditions(known: Validators) -> dict[str, str]:
    both = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in both.items() if value}


def _header(response: httpcore.Response, name: str) -> str:
    wanted = name.encode()
    values = (value for key, value in response.headers if key.lower() == wanted)
    return next(values, b"").decode("latin-1").strip()


def _certificate_reason(error: Exception) -> Message | None:
    """Return why a certificate was refused; None for other errors."""
    # The pool does not chain its errors; the cause is their first argument.
    (cause, *_) = error.args or (None,)
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return None
    return _CERTIFICATE_REASONS.get(cause.verify_code) or N_(
        "its certificate is not valid (%(error)s)", error=verbatim(cause.verify_message)
    )


def _too_large(max_bytes: int) -> PageUnavailable:
    return PageUnavailable("it is larger than %(max)s MB", max=max(1, max_bytes // _MB))
