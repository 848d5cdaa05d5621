"""Limits of request bodies: size, nesting and number of values, checked before parsing.

A view takes 256 kB unless marked with `accepts` or `accepts_files`. A body is read before its
request takes a place (`overload`), so that slow clients do not block others. The settings limit how
many long bodies each user and address may send at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from threading import Lock
from typing import Any

from flask import Flask, request
from werkzeug.exceptions import RequestEntityTooLarge

from portal.errors import (
    EncodedBody,
    MalformedRequest,
    NestedTooDeeply,
    Overloaded,
    TooManyBodies,
    TooManyValues,
)
from portal.http import context
from portal.http.marks import Mark
from portal.limits import callers
from portal.settings import WebSettings

MAX_DEPTH = 64
# Fields of a form or a query string; Flask checks multipart forms.
MAX_FIELDS = 1000
# A name and a password, a token, an invitation.
_MAX_PUBLIC_BODY_BYTES = 64 * 1024
# Longer bodies need a valid token, and a user may send only a few at once.
_SHORT_BODY_BYTES = 64 * 1024
# Long bodies that a process reads at once; there are more threads than that.
_MAX_BODIES = 64
_MAX_PUBLIC_BODIES = 16

_URLENCODED = "application/x-www-form-urlencoded"
# Possessive, so that matching takes linear time; an unclosed string reaches to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}


accepts_files = Mark(accepts_files=True)
"""Let a view take files, which are streamed to disk and limited by the settings."""


def accepts(*, max_kb: int, max_values: int) -> Mark:
    """Let a view take longer bodies, or JSON with more values, than the default."""
    return Mark(max_body_bytes=max_kb * 1024, max_values=max_values)


class BodyPlaces:
    """The long bodies that are being received, counted by sender. Thread-safe."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def taken(self, *limits: tuple[str, int]) -> Iterator[None]:
        """Count a body under each name while it is read. Raises TooManyBodies at the limit of a
        user or address, Overloaded at a limit for everyone."""
        with self._lock:
            for name, limit in limits:
                if self._taken[name] >= limit:
                    raise TooManyBodies(limit=limit) if " " in name else Overloaded
            self._taken.update(name for name, _ in limits)
        try:
            yield
        finally:
            with self._lock:
                self._taken.subtract(name for name, _ in limits)
                self._taken = +self._taken


def init_app(app: Flask, settings: WebSettings) -> None:
    """Check and read bodies. Call this before anything else reads one."""
    places = BodyPlaces()

    def receive() -> None:
        _refuse_many_fields(request.query_string)
        _refuse_nul([request.path, *request.args.keys(), *request.args.values()])
        wanted = context.view()
        if wanted is None or request.method in context.SAFE_METHODS:
            return
        request.max_content_length = _max_bytes()
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise EncodedBody
        if not _is_worth_reading(wanted):
            return
        if _is_long():
            with places.taken(*_body_limits(settings)):
                _read()
        else:
            _read()

    app.before_request(receive)


def _max_bytes() -> int:
    if context.is_public():
        return _MAX_PUBLIC_BODY_BYTES
    if context.marks().accepts_files and request.mimetype == context.UPLOAD:
        # Ten files, and room for the rest of the form.
        return context.services().settings.max_upload_bytes * 10 + 1024 * 1024
    return context.marks().max_body_bytes


def _is_long() -> bool:
    """Return whether a body is long; one of unknown length counts as long."""
    length = request.content_length
    if length is None:
        return "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    return length > _SHORT_BODY_BYTES


def _is_worth_reading(view: Callable[..., Any]) -> bool:
    """Return whether the request may be served: it needs a token, and for a long body or files a
    valid one with the scope of the view."""
    if context.is_public():
        return True
    if request.mimetype != context.UPLOAD and not _is_long():
        return bool(context.read_token(request))
    found = context.signed_in()
    return found is not None and context.scope_of(view, request.method) in found.scopes


def _body_limits(settings: WebSettings) -> list[tuple[str, int]]:
    of_address = (f"address {callers.address()}", settings.bodies_per_address)
    if context.is_public():
        return [of_address, ("public", _MAX_PUBLIC_BODIES)]
    return [
        (callers.caller_key(), settings.bodies_per_user),
        of_address,
        ("all", _MAX_BODIES),
    ]


def _read() -> None:
    """Read the body, files to disk and the rest to memory, and check it before it is parsed."""
    if request.mimetype == context.UPLOAD:
        _refuse_nul([*request.form.keys(), *request.form.values()])
        return
    body = request.get_data(parse_form_data=False)
    if request.content_length is None and len(body) >= (request.max_content_length or 0):
        # Werkzeug truncates a chunked body at the limit.
        raise RequestEntityTooLarge
    if request.mimetype == _URLENCODED:
        _refuse_many_fields(body)
        _refuse_nul([*request.form.keys(), *request.form.values()])
        return
    check_json_shape(body, max_values=context.marks().max_values)


def check_json_shape(text: bytes, *, max_values: int) -> None:
    """Check the depth of JSON and its number of values without building them.

    A value of two bytes costs fifty times as much once it is built. Raises TooManyValues,
    NestedTooDeeply, and MalformedRequest for a NUL, which JSON in UTF-8 never holds. Other errors
    are left to the parser.
    """
    if b"\0" in text:
        raise MalformedRequest("it contains a NUL character")
    structure = _STRING.sub(b"", text).translate(None, _NOT_STRUCTURE)
    # Each value but the first follows a comma or an opening bracket.
    if max(accumulate(map(_STEP.__getitem__, structure[: 2 * max_values])), default=0) > MAX_DEPTH:
        raise NestedTooDeeply
    values = len(structure) - structure.count(b"]") - structure.count(b"}")
    if values > max_values or len(structure) > 2 * max_values:
        raise TooManyValues(limit=max_values)


def _refuse_many_fields(encoded: bytes) -> None:
    if encoded.count(b"&") >= MAX_FIELDS:
        raise TooManyValues(limit=MAX_FIELDS)


def _refuse_nul(values: list[str]) -> None:
    """Refuse NUL, which PostgreSQL cannot store."""
    if any("\0" in value for value in values):
        raise MalformedRequest("it contains a NUL character")
