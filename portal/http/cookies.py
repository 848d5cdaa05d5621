"""Cookies of the portal: HttpOnly, SameSite=Lax, for this host only.

Over HTTPS their names have the prefix `__Host-`, so that browsers refuse cookies planted by a
sibling domain or over plain HTTP.
"""

from __future__ import annotations

from flask import Flask, Request, request
from werkzeug.wrappers import Response

SESSION = "portal_session"
FORM = "portal_form"
LANGUAGE = "portal_language"
THEME = "portal_theme"
DEVICE = "portal_device"
BROWSER = "portal_browser"
PENDING_SIGN_IN = "portal_sign_in"
OIDC = "portal_oidc"
_ALL = (SESSION, FORM, LANGUAGE, THEME, DEVICE, BROWSER, PENDING_SIGN_IN, OIDC)
_PREFIX = "__Host-"
CSRF_FIELD = "csrf_token"  # Flask-WTF's name, in forms and in the cookie FORM


def init_app(app: Flask) -> None:
    app.after_request(clear_unprefixed)


def cookie_name(name: str, *, of: Request | None = None) -> str:
    """Return the name that a cookie has on the wire."""
    return _PREFIX + name if (of or request).is_secure else name


def get_cookie(name: str, *, of: Request | None = None) -> str | None:
    return (of or request).cookies.get(cookie_name(name, of=of))


def set_cookie(response: Response, name: str, value: str, *, max_age: int) -> None:
    response.set_cookie(
        cookie_name(name),
        value,
        max_age=max_age,
        path="/",
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def delete_cookie(response: Response, name: str) -> None:
    response.delete_cookie(
        cookie_name(name), path="/", secure=request.is_secure, httponly=True, samesite="Lax"
    )


def clear_unprefixed(response: Response) -> Response:
    """Over HTTPS, delete cookies left behind by plain HTTP or an earlier version."""
    if request.is_secure:
        for name in _ALL:
            if name in request.cookies:
                response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="Lax")
    return response
