"""What requests may send: how much, how fast, how deep. Checked here, before anything parses it.

A view takes 256 kB unless it is marked with `accepts` or `accepts_files`. A body is read before its
request takes a place among those that are worked on (`overload`), so that slow senders keep no one
else waiting, and each user and address may have only so many long bodies under way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from threading import Lock
from typing import Any, TypeVar, cast

from flask import Flask, request
from werkzeug.exceptions import RequestEntityTooLarge

from portal.errors import (
    N_,
    EncodedBody,
    MalformedRequest,
    NestedTooDeeply,
    Overloaded,
    TooManyBodies,
    TooManyValues,
)
from portal.http import context
from portal.limits import callers
from portal.settings import WebSettings

View = TypeVar("View", bound=Callable[..., Any])

MAX_DEPTH = 64
_MAX_BODY_BYTES = 256 * 1024
_MAX_VALUES = 10_000
# Fields of a form or a query string; multipart forms are held to it by Flask.
MAX_FIELDS = 1000
# A name and a password, a token, an invitation.
_MAX_PUBLIC_BODY_BYTES = 64 * 1024
# Longer ones are read only of users, and of them only so many at once.
_SHORT_BODY_BYTES = 64 * 1024
# Long bodies that a process reads at once: more threads than that are free for other requests.
_MAX_BODIES = 64
_MAX_PUBLIC_BODIES = 16

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_UPLOAD = "multipart/form-data"
_URLENCODED = "application/x-www-form-urlencoded"
# Possessive, so that no text makes it try twice; a string without an end reaches to the end.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0}


def accepts(*, max_kb: int, max_values: int) -> Callable[[View], View]:
    """Mark a view that takes longer bodies than others, or JSON with more values."""

    def mark(view: View) -> View:
        marked = cast("Any", view)
        marked.max_body_bytes, marked.max_values = max_kb * 1024, max_values
        return view

    return mark


def accepts_files(view: View) -> View:
    """Mark a view that takes files: they go to the disk as they come, and the settings say how
    long they may be."""
    cast("Any", view).accepts_files = True
    return view


class BodyPlaces:
    """How many long bodies are under way, by who sends them. Safe between threads."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def taken(self, *limits: tuple[str, int]) -> Iterator[None]:
        """Count a body under each name while it is read. Raises TooManyBodies where as many are
        under way as its limit says, Overloaded where the limit is of all together."""
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
    """Check and read bodies. To be called before anything reads one."""
    places = BodyPlaces()

    def receive() -> None:
        _refuse_many_fields(request.query_string)
        _refuse_nul([request.path, *request.args.keys(), *request.args.values()])
        wanted = context.view()
        if wanted is None or request.method in _SAFE_METHODS:
            return
        request.max_content_length = _max_bytes(wanted)
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise EncodedBody
        if not _is_worth_reading(wanted):
            return
        if _is_long():
            with places.taken(*_places_wanted(settings)):
                _read(wanted)
        else:
            _read(wanted)

    app.before_request(receive)


def _max_bytes(view: Callable[..., Any]) -> int:
    if context.is_public():
        return _MAX_PUBLIC_BODY_BYTES
    if getattr(view, "accepts_files", False) and request.mimetype == _UPLOAD:
        # A little more than ten files: the rest of the form has room too.
        return context.services().settings.max_upload_bytes * 10 + 1024 * 1024
    return int(getattr(view, "max_body_bytes", _MAX_BODY_BYTES))


def _is_long() -> bool:
    """Whether a body may take its time; one that does not say how long it is counts as long."""
    length = request.content_length
    if length is None:
        return "chunked" in request.headers.get("Transfer-Encoding", "").lower()
    return length > _SHORT_BODY_BYTES


def _is_worth_reading(view: Callable[..., Any]) -> bool:
    """Whether the request may be served: without a token it is refused unread, and of a long body
    or files the token has to be valid and to reach far enough."""
    if context.is_public():
        return True
    if request.mimetype != _UPLOAD and not _is_long():
        return bool(context.read_token(request))
    found = context.signed_in()
    return found is not None and context.scope_of(view, request.method) in found.scopes


def _places_wanted(settings: WebSettings) -> list[tuple[str, int]]:
    of_address = (f"address {callers.address()}", settings.bodies_per_address)
    if context.is_public():
        return [of_address, ("public", _MAX_PUBLIC_BODIES)]
    return [
        (callers.who_asks(), settings.bodies_per_user),
        of_address,
        ("all", _MAX_BODIES),
    ]


def _read(view: Callable[..., Any]) -> None:
    """Have all that was sent: files on the disk, the rest in memory. Raises what is wrong with it
    before anything is built of it."""
    if request.mimetype == _UPLOAD:
        _refuse_nul([*request.form.keys(), *request.form.values()])
        return
    body = request.get_data(parse_form_data=False)
    if request.content_length is None and len(body) >= (request.max_content_length or 0):
        # Of a chunked body werkzeug gives so much, and leaves out the rest.
        raise RequestEntityTooLarge
    if request.mimetype == _URLENCODED:
        _refuse_many_fields(body)
        _refuse_nul([*request.form.keys(), *request.form.values()])
        return
    check_json_shape(body, max_values=int(getattr(view, "max_values", _MAX_VALUES)))


def check_json_shape(text: bytes, *, max_values: int) -> None:
    """See how deep JSON is and how many values it has, without building them.

    A value of two bytes costs fifty times as much once it is built. Raises TooManyValues,
    NestedTooDeeply, and MalformedRequest for a NUL, which JSON in UTF-8 never holds: other
    encodings would be read wrongly here. What else is wrong with it is for the parser to say.
    """
    if b"\0" in text:
        raise MalformedRequest(reason=N_("it contains a NUL character"))
    structure = _STRING.sub(b"", text).translate(None, _NOT_STRUCTURE)
    # As many brackets close as open, and each value but the first stands behind a comma or a
    # bracket that opens.
    if max(accumulate(map(_STEP.__getitem__, structure[: 2 * max_values])), default=0) > MAX_DEPTH:
        raise NestedTooDeeply
    values = len(structure) - structure.count(b"]") - structure.count(b"}")
    if values > max_values or len(structure) > 2 * max_values:
        raise TooManyValues(limit=max_values)


def _refuse_many_fields(encoded: bytes) -> None:
    if encoded.count(b"&") >= MAX_FIELDS:
        raise TooManyValues(limit=MAX_FIELDS)


def _refuse_nul(values: list[str]) -> None:
    """No address or form of ours has a NUL in it, and PostgreSQL cannot store one."""
    if any("\0" in value for value in values):
        raise MalformedRequest(reason=N_("it contains a NUL character"))
