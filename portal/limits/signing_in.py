"""Limits of failed sign-ins, which no setting lifts.

Three counts, because each alone can be circumvented: an address at a name, an address at all names,
and a name from all addresses. A browser that has signed in with the name before has its own count
(`devices`), and so has an address from which the name has signed in (`known`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import Flask, Response, current_app, g
from flask_limiter import Limit

from portal.http import context
from portal.http.credentials import takes_json
from portal.limits.callers import address, digest_name, tried_name
from portal.limits.devices import known_device, remember_device
from portal.limits.everyday import NONE
from portal.limits.known import KnownAddresses
from portal.services import Services
from portal.settings import RateLimitSettings

View = TypeVar("View", bound=Callable[..., Any])

_REFUSED = {401, 404, 422}
_KNOWN = "portal-known-addresses"


def init_app(app: Flask, services: Services) -> None:
    app.extensions[_KNOWN] = KnownAddresses(services.redis)


def failed_sign_ins(view: View) -> View:
    """Mark a view that checks a password or an invitation."""
    cast("Any", view).checks_passwords = True
    return view


def is_sign_in() -> bool:
    return bool(getattr(context.view(), "checks_passwords", False))


def limits() -> list[Limit]:
    return [
        Limit(lambda: _allowed("sign_in"), key_function=_who_tries, scope="sign-in", shared=True),
        Limit(
            lambda: _allowed("sign_in_address", of_new_browsers=True),
            key_function=address,
            scope="sign-in-address",
            shared=True,
        ),
        Limit(
            lambda: _allowed("sign_in_name", of_new_browsers=True),
            key_function=_name_tried,
            scope="sign-in-name",
            shared=True,
        ),
    ]


def has_failed(response: Response) -> bool:
    """Return whether the password or the invitation was wrong, by the response."""
    return response.status_code in _REFUSED


def confirm_sign_in(name: str) -> None:
    """Note that this request has signed in `name`. Views call it when they create a session; the
    status says too little, since OPTIONS gets 200 as well."""
    g.signed_in_name = name


def note_success(response: Response) -> Response:
    """Remember the address of a sign-in that succeeded, and set the browser's device cookie."""
    if (name := g.get("signed_in_name")) is not None:
        digest = digest_name(name)
        _known().note(f"{address()} {digest}")
        if not takes_json():
            remember_device(response, digest)
    return response


def _allowed(name: str, *, of_new_browsers: bool = False) -> str:
    if not is_sign_in() or (of_new_browsers and _device() is not None):
        return NONE
    settings: RateLimitSettings = context.services().settings.rate_limits
    return str(getattr(settings, name))


def _who_tries() -> str:
    """Return the key of the address and name together, so that one attacker locks out no others."""
    return _device() or _address_and_name()


def _name_tried() -> str:
    """Return the key of the name; a known address has its own count for it."""
    who = _address_and_name()
    return who if _known().has(who) else tried_name()


def _address_and_name() -> str:
    return f"{address()} {tried_name()}"


def _known() -> KnownAddresses:
    return cast("KnownAddresses", current_app.extensions[_KNOWN])


def _device() -> str | None:
    if "device" not in g:
        g.device = known_device()
    return cast("str | None", g.device)
