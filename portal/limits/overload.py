"""Shed load: a process works on some requests, lets a few wait, and answers 503 to the rest.

A request that does not get its turn within `patience_s` gets 503 with `Retry-After`. The other
threads stay free for these answers, /health and static files.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Semaphore

from flask import Flask, Response, g
from flask_login import AnonymousUserMixin

from portal.errors import Overloaded
from portal.limits.endpoints import is_free, is_scrape
from portal.limits.signing_in import is_sign_in
from portal.settings import WebSettings

_EVENTS = "text/event-stream"
# Checking a password takes a core for a while.
_SIGN_INS_AT_ONCE = 4
# A whole team may sign in at nine o'clock.
_SIGN_INS_WAITING = 16
_SIGN_IN_PATIENCE = 3
_REQUESTS_A_CONNECTION = 2
# A few monitoring systems may ask at the same moment.
_SCRAPES_AT_ONCE = 1
_SCRAPES_WAITING = 4


class RequestSlots:
    """A process's slots for requests; `waiting` requests wait for one. Thread-safe."""

    def __init__(self, settings: WebSettings) -> None:
        self._free = Semaphore(settings.requests_at_once)
        self._patience_s = settings.patience_s
        self._max_waiting = settings.requests_waiting
        self.waiting = 0
        self._lock = Lock()

    def acquire(self) -> bool:
        """Acquire a slot within `patience_s`; return False if too many wait or it takes longer."""
        if self._free.acquire(blocking=False):
            return True
        with self._lock:
            if self.waiting >= self._max_waiting:
                return False
            self.waiting += 1
        try:
            return self._free.acquire(timeout=self._patience_s)
        finally:
            with self._lock:
                self.waiting -= 1

    def release(self) -> None:
        self._free.release()


def init_app(app: Flask, settings: WebSettings, *, connections: int) -> None:
    """Guard all requests; `connections` is the size of the database pool. Call this before anything
    that takes long."""
    # A request holds a connection only part of the time, but many more would just wait for one.
    room = min(settings.requests_at_once, _REQUESTS_A_CONNECTION * connections)
    settings = settings.model_copy(update={"requests_at_once": room})
    # Sign-ins have their own slots, so that long work does not lock users out. Each is charged as
    # a failure until it succeeds, so only few run at once: a team that signs in together must not
    # look like an attack.
    sign_ins = settings.model_copy(
        update={
            "requests_at_once": min(_SIGN_INS_AT_ONCE, settings.requests_at_once),
            "requests_waiting": min(_SIGN_INS_WAITING, settings.requests_waiting),
            "patience_s": _SIGN_IN_PATIENCE * settings.patience_s,
        }
    )
    _guard(app, RequestSlots(sign_ins), applies=is_sign_in)
    # Scrapes are slow: they take neither the slots of others nor all the threads.
    scrapes = settings.model_copy(
        update={"requests_at_once": _SCRAPES_AT_ONCE, "requests_waiting": _SCRAPES_WAITING}
    )
    _guard(app, RequestSlots(scrapes), applies=is_scrape)
    _guard(app, RequestSlots(settings), applies=lambda: not (is_free() or is_sign_in()))


def _guard(app: Flask, slots: RequestSlots, *, applies: Callable[[], bool]) -> None:
    """Have matching requests acquire a slot and release it at their end."""
    key = f"slot {id(slots)}"

    def enter() -> None:
        if not applies():
            return
        if not slots.acquire():
            # The error page must not wait for a database to load the user.
            g._login_user = AnonymousUserMixin()  # noqa: SLF001 - where flask-login keeps it
            raise Overloaded
        setattr(g, key, slots)

    def leave(_error: BaseException | None = None) -> None:
        taken: RequestSlots | None = g.pop(key, None)
        if taken is not None:
            taken.release()

    def leave_to_stream(response: Response) -> Response:
        # An answer may stream for minutes, and answers have their own limit.
        if response.mimetype == _EVENTS:
            leave()
        return response

    app.before_request(enter)
    app.after_request(leave_to_stream)
    app.teardown_request(leave)
