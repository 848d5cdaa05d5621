"""Limits of failed sign-ins, confirmations of a password and new accounts, which no setting lifts.

Three counts, because each alone can be circumvented: an address at a name, an address at all names,
and a name from all addresses. A name under attack is closed to new clients for a while, which would
lock out its owner as well. So a browser in which the name has signed in carries a signed cookie and
has its own count (OWASP's device cookies), and so has an address from which the name has
signed in, for programs, which keep no cookies.
"""

from __future__ import annotations

import secrets
from threading import Lock
from typing import cast

from cachetools import TTLCache
from flask import Flask, Response, current_app, g
from flask_limiter import Limit
from itsdangerous import BadSignature, URLSafeTimedSerializer

from portal.http import context, cookies, recent_sign_in
from portal.http.credentials import read_credentials, takes_json
from portal.http.marks import Mark
from portal.limits.callers import address, digest_name, tried_name
from portal.limits.endpoints import NONE
from portal.limits.storage import MAX_KEYS
from portal.services import Services
from portal.settings import RateLimitSettings
from portal.store.redis_store import RedisStore

failed_sign_ins = Mark(checks_passwords=True)
"""Mark a view that checks a password, or a link that sets one."""

registrations = Mark(checks_passwords=True, creates_accounts=True)
"""Mark a view on which anyone may create an account."""

_REFUSED = {401, 404, 422}
_KNOWN = "portal-known-addresses"
_KNOWN_S = 30 * 24 * 3600
_DEVICE_S = 180 * 24 * 3600


class KnownAddresses:
    """Addresses that have signed in, each with the digest of a name (`who`). Thread-safe."""

    def __init__(self, redis: RedisStore | None) -> None:
        self._redis = redis
        self._kept: TTLCache[str, None] = TTLCache(MAX_KEYS, _KNOWN_S)
        self._lock = Lock()

    def note(self, who: str) -> None:
        """Remember a sign-in that succeeded."""
        with self._lock:
            self._kept[who] = None
        if self._redis is not None:
            self._redis.put(f"known {who}", b"1", ttl_s=_KNOWN_S)

    def has(self, who: str) -> bool:
        with self._lock:
            if who in self._kept:
                return True
        return self._redis is not None and self._redis.get(f"known {who}") is not None


def init_app(app: Flask, services: Services) -> None:
    app.extensions[_KNOWN] = KnownAddresses(services.redis)


def is_sign_in() -> bool:
    return context.marks().checks_passwords


def limits() -> list[Limit]:
    return [
        Limit(lambda: _allowed("sign_in"), key_function=_attempt_key, scope="sign-in", shared=True),
        Limit(
            lambda: _allowed("sign_in_address", of_new_browsers=True),
            key_function=address,
            scope="sign-in-address",
            shared=True,
        ),
        Limit(
            _allowed_at_name,
            key_function=_name_tried,
            scope="sign-in-name",
            shared=True,
        ),
        # Counted per session: a stolen session cannot guess for long, nor use up the owner's
        # sign-in attempts.
        Limit(_confirmations_allowed, key_function=_session, scope="confirm-password", shared=True),
        # Not shared, so that an attempt that succeeds is not refunded.
        Limit(_registrations_allowed, key_function=address),
    ]


def has_failed(response: Response) -> bool:
    """Return whether a password or a link was wrong."""
    return response.status_code in _REFUSED or recent_sign_in.has_failed()


def confirm_sign_in(name: str) -> None:
    """Note that this request has signed in `name`. Views call it when they create a session; the
    status is not enough, since OPTIONS gets 200 as well."""
    g.signed_in_name = name


def note_success(response: Response) -> Response:
    """Remember the address of a sign-in that succeeded, and set the browser's device cookie."""
    if (name := g.get("signed_in_name")) is not None:
        digest = digest_name(name)
        _known_addresses().note(f"{address()} {digest}")
        if not takes_json():
            remember_device(response, digest)
    return response


def _allowed(name: str, *, of_new_browsers: bool = False) -> str:
    if not is_sign_in() or (of_new_browsers and _device() is not None):
        return NONE
    settings: RateLimitSettings = context.services().settings.rate_limits
    return str(getattr(settings, name))


def _allowed_at_name() -> str:
    """Return the limit of a name. Links that set a password have no name: they would share one
    count, which anyone could use up for all of them."""
    allowed = _allowed("sign_in_name", of_new_browsers=True)
    return allowed if allowed and read_credentials().name else NONE


def _attempt_key() -> str:
    """Return the key of a known browser, else of address and name together, so that an attacker
    does not lock out others."""
    return _device() or _address_and_name()


def _name_tried() -> str:
    """Return the key of the name; a known address has its own count for it."""
    who = _address_and_name()
    return who if _known_addresses().has(who) else tried_name()


def _address_and_name() -> str:
    return f"{address()} {tried_name()}"


def _known_addresses() -> KnownAddresses:
    return cast("KnownAddresses", current_app.extensions[_KNOWN])


def _device() -> str | None:
    if "device" not in g:
        g.device = known_device()
    return cast("str | None", g.device)


def known_device() -> str | None:
    """Return this browser's key if it has signed in before with the name that it tries."""
    try:
        name, device = _notes().loads(cookies.get_cookie(cookies.DEVICE) or "", max_age=_DEVICE_S)
    except (BadSignature, ValueError, TypeError):
        return None
    return f"device {device}" if name == tried_name() else None


def remember_device(response: Response, name: str) -> None:
    """Set the cookie with the digest of the name that signed in."""
    note = _notes().dumps([name, secrets.token_hex(8)])
    cookies.set_cookie(response, cookies.DEVICE, note, max_age=_DEVICE_S)


def _notes() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(context.services().secret_keys, salt="portal-device")


def _confirmations_allowed() -> str:
    if not recent_sign_in.is_confirmation() or context.signed_in() is None:
        return NONE
    return str(context.services().settings.rate_limits.sign_in_confirmation)


def _registrations_allowed() -> str:
    if not context.marks().creates_accounts:
        return NONE
    return str(context.services().settings.rate_limits.sign_in_registration)


def _session() -> str:
    signed_in = context.signed_in()
    if signed_in is None:
        return "no session"
    return f"session {signed_in.session.id if signed_in.session else signed_in.user.id}"
