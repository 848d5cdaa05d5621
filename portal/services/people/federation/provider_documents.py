"""Documents of an identity provider: fetched with limits, cached, refreshed in the background."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import httpx
import structlog

from portal.errors import IssuerUnavailable

# Refreshed after this long, so that a withdrawn key or a moved address is no longer used.
_FRESH_S = 300.0
# How long a copy is used while the provider cannot be reached.
_USABLE_S = 24 * 3600.0
# Between two refreshes: made-up key ids must not make the portal flood the provider.
_PAUSE_S = 60.0
_PAUSE_WITHOUT_COPY_S = 5.0
_TIMEOUT_S = 2.0
_MAX_BYTES = 256 * 1024

T = TypeVar("T")
R = TypeVar("R")

log = structlog.get_logger(__name__)


class UnusableDocument(ValueError):
    """The reason why a document is unusable, in words that may be logged."""


@dataclass(frozen=True, slots=True)
class _Copy(Generic[T]):
    content: T
    loaded_at: float


class CachedDocument(Generic[T]):
    """A document that `load` downloads and parses. Thread-safe. Loading runs in its own thread, so
    that no request waits longer than two seconds, and none waits at all while a usable copy holds
    what it needs. `clock` is monotonic seconds."""

    def __init__(
        self, load: Callable[[], T], *, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._copy: _Copy[T] | None = None
        self._loading: threading.Event | None = None
        self._not_before = 0.0
        self._has_failed = False

    def find(self, pick: Callable[[T], R | None]) -> R | None:
        """Return what `pick` finds in the document; None if it is not there even after a refresh.
        Raises IssuerUnavailable when the provider cannot be asked."""
        copy = self._usable()
        found = pick(copy.content) if copy else None
        if copy is not None and found is not None:
            if self._clock() - copy.loaded_at > _FRESH_S:
                self._start_loading()
            return found
        loading = self._start_loading()
        is_over = loading is None or loading.wait(_TIMEOUT_S)
        copy = self._usable()
        found = pick(copy.content) if copy else None
        if found is None and (copy is None or self._has_failed or not is_over):
            raise IssuerUnavailable
        return found

    def get(self) -> T:
        """Return the whole document. Raises IssuerUnavailable."""
        found = self.find(lambda content: content)
        if found is None:
            raise IssuerUnavailable
        return found

    def _usable(self) -> _Copy[T] | None:
        copy = self._copy
        if copy is None or self._clock() - copy.loaded_at > _USABLE_S:
            return None
        return copy

    def _start_loading(self) -> threading.Event | None:
        """Start a load if none is in progress, and return the event of its end; None if it is too
        soon for another."""
        with self._lock:
            if self._loading is not None:
                return self._loading
            if self._clock() < self._not_before:
                return None
            self._loading = threading.Event()
            threading.Thread(target=self._refresh, name=self._name, daemon=True).start()
            return self._loading

    def _refresh(self) -> None:
        loaded: _Copy[T] | None = None
        try:
            loaded = _Copy(self._load(), self._clock())
        except Exception as error:  # noqa: BLE001 - waiting requests must learn of any failure
            log.warning(
                "provider_document_unreadable",
                document=self._name,
                error_type=type(error).__name__,
                reason=str(error) if isinstance(error, UnusableDocument) else None,
            )
        with self._lock:
            self._copy = loaded or self._copy
            self._has_failed = loaded is None
            pause_s = _PAUSE_S if self._copy else _PAUSE_WITHOUT_COPY_S
            self._not_before = self._clock() + pause_s
            if self._loading is not None:
                self._loading.set()
            self._loading = None


@cache
def _certificates() -> ssl.SSLContext:
    """Load the machine's certificates once: that takes longer than a request."""
    return httpx.create_ssl_context()


def request(
    method: str,
    address: str,
    *,
    timeout_s: float = _TIMEOUT_S,
    headers: dict[str, str] | None = None,
    content: str | None = None,
) -> httpx.Response:
    """Return a whole response of at most 256 kB, within `timeout_s` altogether. Redirects are not
    followed: only the configured address may say whose signature counts. Raises httpx.HTTPError,
    ValueError for more bytes or seconds."""
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    with httpx.stream(
        method,
        address,
        headers=headers,
        content=content,
        timeout=timeout_s,
        follow_redirects=False,
        verify=_certificates(),
    ) as response:
        for part in response.iter_bytes():
            body += part
            if len(body) > _MAX_BYTES or time.monotonic() > deadline:
                raise ValueError("too much, or too late")
    return httpx.Response(response.status_code, content=bytes(body), request=response.request)


def download(address: str) -> bytes:
    """Return the body of a 200 response. Raises httpx.HTTPError, ValueError."""
    response = request("GET", address)
    if response.status_code != httpx.codes.OK:
        raise ValueError(f"status {response.status_code}")
    return response.content


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError."""
    content = json.loads(body)
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    return content
