"""Values that the browser holds for a later page: encrypted in the form cookie, for the same user,
for ten minutes, and never in the database."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, after_this_request, session
from flask.json.tag import TaggedJSONSerializer

from portal.http import context
from portal.services.people import sealing

_MAX_AGE_S = 600
_MAX_CHARACTERS = 2000  # After encryption; the cookie of 4096 bytes has other values too.
_json = TaggedJSONSerializer()


def hold(name: str, value: Any) -> bool:
    """Hold a value for a later page. Return False, and hold nothing, if it is too long for a
    cookie."""
    services, user = context.caller()
    sealed = sealing.seal(services, _json.dumps([user.id, value]).encode())
    if len(sealed) > _MAX_CHARACTERS:
        return False
    session[name] = sealed.decode()
    return True


def read(name: str) -> Any | None:
    """Return the value held for this user; None if there is none or it is too old."""
    services, user = context.caller()
    try:
        sealed = session.get(name, "").encode()
        plain = sealing.unseal(services, sealed, max_age_s=_MAX_AGE_S)
    except sealing.Unreadable:
        session.pop(name, None)
        return None
    user_id, value = _json.loads(plain.decode())
    # Another user may have signed in with the same browser meanwhile.
    return value if user_id == user.id else None


def forget_once_shown(name: str) -> None:
    """Delete a held value once this request has succeeded; an error page keeps it."""

    @after_this_request
    def forget(response: Response) -> Response:
        if response.status_code < HTTPStatus.BAD_REQUEST:
            session.pop(name, None)
        return response
