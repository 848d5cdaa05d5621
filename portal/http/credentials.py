"""The name and password of a sign-in.

The limits count attempts by name, and views check the password. Both read the credentials here, so
that no request is counted under one name and checked under another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from flask import Flask, g, request

from portal.errors import UnsupportedMediaType
from portal.services.people.accounts import normalise_name
from portal.text.characters.storable import storable

# Everything under this path takes only JSON.
_JSON_PREFIX = "/api/auth/"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a request; empty if it has none."""

    name: str
    password: str = field(repr=False)


def init_app(app: Flask) -> None:
    """Refuse bodies of the wrong type. Call this before the limits are registered."""
    app.before_request(_require_json)


def takes_json() -> bool:
    """Return whether the address of this request takes JSON; the sign-in pages take forms."""
    return request.path.startswith(_JSON_PREFIX)


def read_credentials() -> Credentials:
    """Return the name, normalised, and the password of this request."""
    if "credentials" not in g:
        fields, name = (_json(), "username") if takes_json() else (request.form, "name")
        g.credentials = Credentials(
            name=normalise_name(_text(fields.get(name))), password=_text(fields.get("password"))
        )
    return cast("Credentials", g.credentials)


def _json() -> Mapping[str, object]:
    try:
        body = request.get_json(silent=True)
    except RecursionError:
        # The view reads it again and answers 400.
        body = None
    return body if isinstance(body, Mapping) else {}


def _text(value: object) -> str:
    return storable(value) if isinstance(value, str) else ""


def _require_json() -> None:
    """Refuse a body that is not JSON if the view takes JSON."""
    # A body of unknown length has no Content-Length.
    has_body = bool(request.content_length) or "Transfer-Encoding" in request.headers
    if has_body and takes_json() and not request.is_json:
        raise UnsupportedMediaType
