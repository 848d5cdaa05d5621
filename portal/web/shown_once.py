"""Show a new secret once, on the page that its form redirects to.

An answer to the form itself would make another secret each time it is reloaded. Until the page is
shown, the secret is in the browser's form cookie, encrypted, and never in the database.
"""

from __future__ import annotations

from typing import Any

from flask import session
from flask.json.tag import TaggedJSONSerializer

from portal.http import context
from portal.services.people import sealing

_HELD = "shown_once"
_json = TaggedJSONSerializer()


def hold(purpose: str, **values: Any) -> None:
    """Hold values of the template for the next page that takes those of `purpose`."""
    services, user = context.caller()
    plain = _json.dumps([purpose, user.id, values])
    session[_HELD] = sealing.seal(services, plain.encode()).decode()


def take(purpose: str) -> dict[str, Any]:
    """Return the values that are held for this page and user, and forget them; else nothing."""
    services, user = context.caller()
    sealed = session.get(_HELD, "").encode()
    try:
        found = _json.loads(sealing.unseal(services, sealed).decode())
    except sealing.Unreadable:
        return {}
    # Another user may have signed in with the same browser meanwhile.
    if found[:2] != [purpose, user.id]:
        return {}
    del session[_HELD]
    values: dict[str, Any] = found[2]
    return values
