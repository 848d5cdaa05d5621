"""Return which rate limit an endpoint has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import request

from portal.http import context

View = TypeVar("View", bound=Callable[..., Any])

NONE = ""
"""What Flask-Limiter takes for no limit."""

_FREE = ("/static/", "/health", "/metrics")


def is_free() -> bool:
    """Return whether a request is never limited: static files, health and metrics."""
    return request.path.startswith(_FREE)


def is_scrape() -> bool:
    """Return whether a request reads the metrics."""
    return request.path == "/metrics"


def limited(name: str) -> Callable[[View], View]:
    """Give a view its own limit; `name` is a field of RateLimitSettings."""

    def mark(view: View) -> View:
        cast("Any", view).rate_limit = name
        return view

    return mark


def limit_name() -> str:
    """Return the field of RateLimitSettings that limits the endpoint."""
    return str(getattr(context.view(), "rate_limit", "default"))


def rate_limit() -> str:
    """Return what the endpoint allows one user, or one address without a sign-in."""
    settings = context.services().settings.rate_limits
    if is_free() or not settings.enabled:
        return NONE
    return str(getattr(settings, limit_name()))
