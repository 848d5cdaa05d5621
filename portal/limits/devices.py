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
    """What this browser is counted by when it tries a name that it has signed in before."""
    try:
        name, device = _notes().loads(cookies.get_cookie(cookies.DEVICE) or "", max_age=_LIFE_S)
    except (BadSignature, ValueError, TypeError):
        return None
    return f"device {device}" if name == callers.tried_name() else None


def remember_device(response: Response) -> None:
    """Have the browser keep that the name it tried was signed in."""
    note = _notes().dumps([callers.tried_name(), secrets.token_hex(8)])
    cookies.set_cookie(response, cookies.DEVICE, note, max_age=_LIFE_S)


def _notes() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(context.services().secret_key, salt="portal-device")
