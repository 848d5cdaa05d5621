"""Limits of each endpoint: how many requests in a window, and how many at the same moment."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from flask import Flask, g, request

from portal.errors import RateLimited
from portal.http import context
from portal.http.marks import Mark
from portal.limits.callers import caller_key
from portal.settings import RateLimitSettings

NONE = ""
"""Means no limit to Flask-Limiter."""

_FREE = ("/static/", "/health", "/metrics")


def is_free() -> bool:
    """Return whether a request is never limited: static files, health and metrics."""
    return request.path.startswith(_FREE)


def is_scrape() -> bool:
    """Return whether a request reads the metrics."""
    return request.path == "/metrics"


def limited(name: str) -> Mark:
    """Give a view its own limit; `name` is a field of RateLimitSettings."""
    return Mark(rate_limit=name)


def limit_name() -> str:
    """Return the field of RateLimitSettings that limits the endpoint."""
    return context.marks().rate_limit


def rate_limit() -> str:
    """Return the endpoint's rate limit, per user, or per address without a sign-in."""
    settings = context.services().settings.rate_limits
    if is_free() or not settings.enabled:
        return NONE
    return str(getattr(settings, limit_name()))


def init_app(app: Flask, settings: RateLimitSettings) -> None:
    """Refuse requests beyond the burst of their endpoint. Each process counts its own."""
    running: Counter[tuple[str, str]] = Counter()
    lock = Lock()

    def enter() -> None:
        if not settings.enabled or is_free() or context.view() is None:
            return
        name = limit_name()
        burst = getattr(settings, f"{name}_burst")
        if not burst:
            return
        key = (name, caller_key())
        with lock:
            if running[key] >= burst:
                raise RateLimited(seconds=1)
            running[key] += 1
        g.burst = key

    def leave(_error: BaseException | None) -> None:
        key = g.pop("burst", None)
        if key is not None:
            with lock:
                running[key] -= 1
                if not running[key]:
                    del running[key]

    app.before_request(enter)
    app.teardown_request(leave)
