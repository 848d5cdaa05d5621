"""How often a person may ask. Sign-in is limited always, whatever the settings switch off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from flask import Flask, Response, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from portal import context
from portal.context import View
from portal.settings import Settings

_REFUSED = {401, 404, 422}

limiter = Limiter(
    key_func=get_remote_address,
    strategy="moving-window",
    in_memory_fallback_enabled=True,
    headers_enabled=True,
)


def init_app(app: Flask, settings: Settings) -> None:
    """Count in Redis where there is one, else in this process; without Redis it goes on so."""
    app.config.update(
        RATELIMIT_STORAGE_URI=settings.redis_url or "memory://",
        RATELIMIT_KEY_PREFIX="portal",
    )
    limiter.init_app(app)


def _who_tries() -> str:
    """The address together with the name: one guesser does not lock everyone else out."""
    body = request.get_json(silent=True) if request.is_json else request.form
    name = (body.get("username") or body.get("name")) if isinstance(body, Mapping) else None
    return f"{get_remote_address()} {str(name or '').strip().casefold()[:100]}"


def _was_refused(response: Response) -> bool:
    return response.status_code in _REFUSED


def failed_sign_ins(view: View) -> View:
    """Limit how often a sign-in may fail; those that succeed are not counted."""
    limit = limiter.limit(
        lambda: context.services().settings.rate_limits.sign_in,
        key_func=_who_tries,
        deduct_when=_was_refused,
    )
    return cast("View", limit(view))
