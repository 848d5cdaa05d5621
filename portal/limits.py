"""How often a person may ask. Sign-in is limited always, whatever the settings switch off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from flask import Flask, Response, request
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from portal import context
from portal.context import View
from portal.services import accounts
from portal.settings import Settings

_REFUSED = {401, 404, 422}
_WAITING_HELPS = {429, 503}

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
    # Registered first, so that it runs after the limiter has written its headers.
    app.after_request(_without_advice_to_wait)
    limiter.init_app(app)


def _who_tries() -> str:
    """The address together with the name: one guesser does not lock everyone else out.

    The name is the one that the sign-in itself will read, as it will read it: a second spelling
    of the same name must not open a second account of attempts.
    """
    if request.is_json:
        body = request.get_json(silent=True)
        name = body.get("username") if isinstance(body, Mapping) else None
    else:
        name = request.form.get("name")
    return f"{get_remote_address()} {accounts.normalise_name(str(name or '')).casefold()[:100]}"


def _without_advice_to_wait(response: Response) -> Response:
    """Retry-After only where waiting is what helps."""
    if response.status_code not in _WAITING_HELPS:
        response.headers.pop("Retry-After", None)
    return response


def _was_refused(response: Response) -> bool:
    return response.status_code in _REFUSED


def limited(name: str) -> Callable[[View], View]:
    """Limit how often a person may ask one endpoint: `name` is a field of RateLimitSettings."""

    def decorate(view: View) -> View:
        limit = limiter.limit(
            lambda: getattr(context.services().settings.rate_limits, name), key_func=_who_asks
        )
        return cast("View", limit(view))

    return decorate


def _who_asks() -> str:
    """The person, wherever they ask from; the address of a stranger."""
    found = context.signed_in()
    return f"person {found.person.id}" if found is not None else get_remote_address()


def failed_sign_ins(view: View) -> View:
    """Limit how often a sign-in may fail; those that succeed are not counted."""
    limit = limiter.shared_limit(
        lambda: context.services().settings.rate_limits.sign_in,
        scope="sign-in",
        key_func=_who_tries,
        deduct_when=_was_refused,
    )
    return cast("View", limit(view))
