"""Rate limits, bursts and overload. Sign-in is limited even when the settings lift all limits.

A request is counted before its view, by its user or, without a sign-in, by its address, in a moving
window: 30 per minute means 30 in any sixty seconds.
"""

from __future__ import annotations

from typing import Any, cast

from flask import Flask, Response
from flask_limiter import Limit, Limiter, RequestLimit

from portal.errors import RateLimited
from portal.limits import bodies, endpoints, overload, signing_in
from portal.limits.callers import caller_key
from portal.limits.calls import seconds_until
from portal.limits.endpoints import limited, rate_limit
from portal.limits.signing_in import confirm_sign_in, failed_sign_ins, registrations
from portal.limits.storage import SCHEME, SharedWindows
from portal.services import Services

__all__ = ["confirm_sign_in", "failed_sign_ins", "init_app", "limited", "registrations"]


def init_app(app: Flask, services: Services) -> None:
    """Count every request. Call this before `require_login`, so that refused requests count too."""
    settings = services.settings
    bodies.init_app(app, settings.web)
    signing_in.init_app(app, services)
    overload.init_app(app, settings.web, connections=settings.database_pool_size)
    endpoints.init_app(app, settings.rate_limits)
    limiter = Limiter(
        caller_key,
        default_limits=[Limit(rate_limit), *signing_in.limits()],
        strategy="moving-window",
        storage_uri=f"{SCHEME}://",
        storage_options=cast("Any", {"redis": services.redis}),
        on_breach=_refuse,
    )

    def finish(response: Response) -> Response:
        _refund(limiter, response)
        _write_headers(limiter, response)
        return signing_in.note_success(response)

    app.after_request(finish)
    limiter.init_app(app)


def _refuse(limit: RequestLimit) -> Response:
    """Refuse a request, by raising RateLimited, which each surface turns into a response."""
    raise RateLimited(seconds=seconds_until(limit.window.reset_time))


def _refund(limiter: Limiter, response: Response) -> None:
    """Refund a sign-in that succeeded. Attempts are charged before the password is checked, so that
    parallel ones cannot exceed the limit."""
    if signing_in.has_failed(response):
        return
    storage = cast("SharedWindows", limiter.storage)
    for limit in limiter.current_limits:
        if limit.shared and not limit.breached:
            storage.refund(limit.key)


def _write_headers(limiter: Limiter, response: Response) -> None:
    """Describe the limit that was exceeded, else the one with the least remaining."""
    limits = limiter.current_limits
    if not limits:
        return
    nearest = min(limits, key=lambda limit: (not limit.breached, limit.remaining))
    response.headers["X-RateLimit-Limit"] = str(nearest.limit.amount)
    response.headers["X-RateLimit-Remaining"] = str(max(0, nearest.remaining))
    response.headers["X-RateLimit-Reset"] = str(nearest.reset_at)
