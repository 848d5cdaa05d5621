"""Browsers that have signed in before: strangers who guess at a name do not keep them out.

A name that is guessed at from everywhere has to be closed to the world for a while, and then its
owner stands outside with the right password. A browser in which that name has signed in shows a
signed note of it, and is counted by itself (OWASP calls this a device cookie).
"""

from __future__ import annotations

import secrets

from flask import Response
from itsdangerous import BadSignature, URLSafeTimedSerializer

from portal.http import context, cookies
from portal.limits import callers

_LIFE_S = 180 * 24 * 3600


def known_device() -> str | None:
    """Return what to count this browser by, if it has signed in with the name that it tries."""
    try:
        name, device = _notes().loads(cookies.get_cookie(cookies.DEVICE) or "", max_age=_LIFE_S)
    except (BadSignature, ValueError, TypeError):
        return None
    return f"device {device}" if name == callers.tried_name() else None


def remember_device(response: Response, name: str) -> None:
    """Have the browser keep the digest of the name that it signed in with."""
    note = _notes().dumps([name, secrets.token_hex(8)])
    cookies.set_cookie(response, cookies.DEVICE, note, max_age=_LIFE_S)


def _notes() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(context.services().secret_keys, salt="portal-device")
