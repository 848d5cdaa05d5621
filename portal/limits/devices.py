"""Device cookies: browsers that have signed in before are counted apart.

A name under attack is closed to new browsers for a while, which would lock out its owner as well. A
browser in which that name has signed in carries a signed cookie and has its own count (OWASP).
"""

from __future__ import annotations

import secrets

from flask import Response
from itsdangerous import BadSignature, URLSafeTimedSerializer

from portal.http import context, cookies
from portal.limits import callers

_LIFE_S = 180 * 24 * 3600


def known_device() -> str | None:
    """Return this browser's key if it has signed in with the name that it tries."""
    try:
        name, device = _notes().loads(cookies.get_cookie(cookies.DEVICE) or "", max_age=_LIFE_S)
    except (BadSignature, ValueError, TypeError):
        return None
    return f"device {device}" if name == callers.tried_name() else None


def remember_device(response: Response, name: str) -> None:
    """Set the cookie with the digest of the name that signed in."""
    note = _notes().dumps([name, secrets.token_hex(8)])
    cookies.set_cookie(response, cookies.DEVICE, note, max_age=_LIFE_S)


def _notes() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(context.services().secret_keys, salt="portal-device")
