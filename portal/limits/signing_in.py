"""How often a sign-in may fail. Those that succeed are not counted, and nothing lifts it.

Three counts, because each alone leaves a way round: attempts of an address at a name; of an address
at whatever names; at a name from whatever addresses. A browser that has signed in with that name
before is counted by itself alone (`devices`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import Response, current_app, g, request
from flask_limiter import Limit

from portal import context
from portal.limits.callers import address, tried_name
from portal.limits.devices import known_device, remember_device
from portal.limits.everyday import NONE
from portal.settings import RateLimitSettings

View = TypeVar("View", bound=Callable[..., Any])

_REFUSED = {401, 404, 422}
_FIRST_ERROR = 400


def failed_sign_ins(view: View) -> View:
    """Mark a view that checks a password or an invitation."""
    cast("Any", view).checks_passwords = True
    return view


def is_sign_in() -> bool:
    view = current_app.view_functions.get(request.endpoint or "")
    return bool(getattr(view, "checks_passwords", False))


def limits() -> list[Limit]:
    return [
        Limit(lambda: _allowed("sign_in"), key_function=_who_tries, scope="sign-in", shared=True),
        Limit(
            lambda: _allowed("sign_in_address", of_strangers=True),
            key_function=address,
            scope="sign-in-address",
            shared=True,
        ),
        Limit(
            lambda: _allowed("sign_in_name", of_strangers=True),
            key_function=tried_name,
            scope="sign-in-name",
            shared=True,
        ),
    ]


def has_failed(response: Response) -> bool:
    """Whether the password or the invitation was wrong, by the answer."""
    return response.status_code in _REFUSED


def note_success(response: Response) -> Response:
    """Have a browser that signed in remember it."""
    if is_sign_in() and not request.is_json and response.status_code < _FIRST_ERROR:
        remember_device(response)
    return response


def _allowed(name: str, *, of_strangers: bool = False) -> str:
    if not is_sign_in() or (of_strangers and _device() is not None):
        return NONE
    settings: RateLimitSettings = context.services().settings.rate_limits
    return str(getattr(settings, name))


def _who_tries() -> str:
    """The address together with the name: one guesser does not lock everyone else out."""
    return _device() or f"{address()} {tried_name()}"


def _device() -> str | None:
    if "device" not in g:
        g.device = known_device()
    return cast("str | None", g.device)
