"""Middleware that counts and times requests."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, request
from werkzeug.wsgi import ClosingIterator

from portal.observability import metrics, tracing

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_ENDPOINT = "portal.endpoint"


def init_app(app: Flask) -> None:
    """Measure every request. Call this before anything adds a hook that may respond."""
    app.before_request(_note_endpoint)
    app.wsgi_app = _Measured(app.wsgi_app)  # type: ignore[method-assign]


def _note_endpoint() -> None:
    # Not the path: paths contain ids, and clients can invent any number of them.
    request.environ[_ENDPOINT] = request.endpoint or metrics.UNMATCHED


class _Measured:
    """A WSGI middleware that measures requests. A stream is in flight until it is closed, but
    counts as answered when it begins."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method = str(environ["REQUEST_METHOD"])
        status = 500
        started = time.perf_counter()

        def start(line: str, *rest: Any) -> Any:
            nonlocal status
            status = int(line[:3])
            return start_response(line, *rest)

        metrics.request_began(method)
        try:
            answer = self._application(environ, start)
        except BaseException:
            _end(method, _endpoint(environ), status)
            raise
        finally:
            seconds = time.perf_counter() - started
            metrics.request_answered(method, _endpoint(environ), status, seconds)
        trace = tracing.current()
        return ClosingIterator(answer, lambda: _end(method, _endpoint(environ), status, trace))


def _endpoint(environ: WSGIEnvironment) -> str:
    return str(environ.get(_ENDPOINT, metrics.UNMATCHED))


def _end(method: str, endpoint: str, status: int, trace: tracing.Trace | None = None) -> None:
    metrics.request_ended(method)
    # End the trace, so that the server's own log lines that follow do not belong to this request.
    known = metrics.known_method(method)
    tracing.end(trace, {"method": known, "endpoint": endpoint, "status": status})
