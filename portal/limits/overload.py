"""How many requests a process works on: a few wait for their turn, the rest are told at once.

A web server takes whatever comes and lets it wait for a thread. Under more load than it can bear
every answer is then late, also those that tell how it is. Here a request either has its turn within
`patience_s` or gets 503 with `Retry-After`; threads beyond those that work and wait are free for
that, for /health and for files.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Semaphore

from flask import Flask, Response, g
from flask_login import AnonymousUserMixin

from portal.errors import Overloaded
from portal.limits.everyday import is_free, is_scrape
from portal.limits.signing_in import is_sign_in
from portal.settings import WebSettings

_EVENTS = "text/event-stream"
# Checking a password takes a core for a while.
_SIGN_INS_AT_ONCE = 4
# A team that comes to work at nine signs in together, and each waits for a few others.
_SIGN_INS_WAITING = 16
_SIGN_IN_PATIENCE = 3
_REQUESTS_A_CONNECTION = 2
# One is computed at a time; a few monitoring systems may ask at the same moment.
_SCRAPES_AT_ONCE = 1
_SCRAPES_WAITING = 4


class Places:
    """Turns of a process. Safe between threads."""

    def __init__(self, settings: WebSettings) -> None:
        self._free = Semaphore(settings.requests_at_once)
        self._patience_s = settings.patience_s
        self._max_waiting = settings.requests_waiting
        self._waiting = 0
        self._lock = Lock()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._waiting

    def take(self) -> bool:
        """A place, at once or within `patience_s`; False when too many wait or it takes longer."""
        if self._free.acquire(blocking=False):
            return True
        with self._lock:
            if self._waiting >= self._max_waiting:
                return False
            self._waiting += 1
        try:
            return self._free.acquire(timeout=self._patience_s)
        finally:
            with self._lock:
                self._waiting -= 1

    def give_back(self) -> None:
        self._free.release()


def init_app(app: Flask, settings: WebSettings, *, connections: int) -> None:
    """Let requests in as there is room, where a process has so many connections to its database.
    To be called before anything that takes long."""
    # A request has a connection for a part of its time; many more would only wait for one.
    room = min(settings.requests_at_once, _REQUESTS_A_CONNECTION * connections)
    settings = settings.model_copy(update={"requests_at_once": room})
    # Sign-ins have places of their own: work that takes long does not shut people out. Each is
    # charged with a failure until it succeeds: so few at once that people who all sign in together
    # are not taken for guessers.
    sign_ins = settings.model_copy(
        update={
            "requests_at_once": min(_SIGN_INS_AT_ONCE, settings.requests_at_once),
            "requests_waiting": min(_SIGN_INS_WAITING, settings.requests_waiting),
            "patience_s": _SIGN_IN_PATIENCE * settings.patience_s,
        }
    )
    _guard(app, Places(sign_ins), applies=is_sign_in)
    # Scrapes are few and take a while: they neither take a place of others nor all the threads.
    scrapes = settings.model_copy(
        update={"requests_at_once": _SCRAPES_AT_ONCE, "requests_waiting": _SCRAPES_WAITING}
    )
    _guard(app, Places(scrapes), applies=is_scrape)
    _guard(app, Places(settings), applies=lambda: not (is_free() or is_sign_in()))


def _guard(app: Flask, places: Places, *, applies: Callable[[], bool]) -> None:
    """Have requests to which that applies take a place, and give it back however they end."""
    key = f"place {id(places)}"

    def enter() -> None:
        if not applies():
            return
        if not places.take():
            # The page that says so must not wait for a database to find out who reads it.
            g._login_user = AnonymousUserMixin()  # noqa: SLF001 - where flask-login keeps it
            raise Overloaded
        setattr(g, key, places)

    def leave(_error: BaseException | None = None) -> None:
        taken: Places | None = g.pop(key, None)
        if taken is not None:
            taken.give_back()

    def leave_to_stream(response: Response) -> Response:
        # An answer may be written for minutes, and answers have places of their own.
        if response.mimetype == _EVENTS:
            leave()
        return response

    app.before_request(enter)
    app.after_request(leave_to_stream)
    app.teardown_request(leave)
