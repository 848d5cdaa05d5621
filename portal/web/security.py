"""Security headers and CSRF protection.

The content security policy forbids inline scripts and styles and any evaluation of text as script,
so that text of a document could not run even if it were not escaped.
"""

from __future__ import annotations

import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import cast
from urllib.parse import urlsplit

from flask import Flask, Response, g, request, session
from flask.sessions import SecureCookieSessionInterface
from flask_wtf.csrf import CSRFError, CSRFProtect, generate_csrf

from portal.domain.people import SignedIn
from portal.errors import CsrfFailed, PortalError
from portal.http import context, cookies

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "font-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites must not see full addresses: that of a search contains the query.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}

# The address to return to is part of the next address; servers refuse lines over 8 kB.
MAX_PATH_CHARACTERS = 3000

_MASKED = "masked_csrf_token"


class MaskedCSRF(CSRFProtect):  # type: ignore[misc]
    """Flask-WTF's check, for tokens masked by `csrf_token`."""

    def _get_csrf_token(self) -> str | None:
        return unmask(super()._get_csrf_token() or "")


csrf = MaskedCSRF()


class FormSession(SecureCookieSessionInterface):
    """Flask's session cookie: the CSRF secret and flash messages, never a sign-in."""

    def get_cookie_name(self, app: Flask) -> str:
        return cookies.cookie_name(super().get_cookie_name(app))

    def get_cookie_secure(self, app: Flask) -> bool:  # noqa: ARG002 - the signature is fixed
        return request.is_secure


def init_app(app: Flask) -> None:
    app.config.update(
        SESSION_COOKIE_NAME=cookies.FORM,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_HTTPONLY=True,
        # `check_csrf` below decides which requests Flask-WTF checks.
        WTF_CSRF_CHECK_DEFAULT=False,
        # A form is valid as long as the browser session, however long the user reads first.
        WTF_CSRF_TIME_LIMIT=None,
    )
    app.session_interface = FormSession()
    csrf.init_app(app)
    cookies.init_app(app)
    # Macros use the global; pages would get Flask-WTF's token from its context processor.
    app.jinja_env.globals["csrf_token"] = csrf_token
    app.context_processor(lambda: {"csrf_token": csrf_token})
    app.before_request(check_csrf)
    app.after_request(add_headers)


def check_csrf() -> None:
    """Refuse an unsafe request that a browser could have been tricked into. Raises CsrfFailed.

    Bearer requests are exempt: browsers do not add that header on their own, as they do with a
    proxy's password. Requests to the JSON APIs without the session cookie have no credentials that
    another site could misuse.
    """
    if request.method in context.SAFE_METHODS or context.bearer_token(request) is not None:
        return
    is_page = request.blueprint in _page_blueprints()
    if not is_page and cookies.get_cookie(cookies.SESSION) is None:
        return
    _bind_csrf(context.signed_in())
    try:
        csrf.protect(apply_exemptions=True)
    except CSRFError as error:
        raise CsrfFailed from error


def csrf_token() -> str:
    """Return the token for the forms of a page, masked differently in each response.

    Otherwise an attacker who controls other text on the page could learn the token from the size
    of compressed responses (BREACH).
    """
    try:
        signed_in = context.signed_in()
    except PortalError:
        # The error page has forms even if the database is down.
        signed_in = None
    _bind_csrf(signed_in)
    if _MASKED not in g:
        setattr(g, _MASKED, mask(generate_csrf()))
    return cast("str", g.get(_MASKED))


def mask(token: str) -> str:
    """Return random bytes followed by the token combined with them by XOR, in base64."""
    plain = token.encode()
    pad = os.urandom(len(plain))
    return urlsafe_b64encode(pad + _xor(pad, plain)).decode()


def unmask(masked: str) -> str | None:
    """Return the token of a masked one; None if it is not valid."""
    try:
        both = urlsafe_b64decode(masked.encode())
        half = len(both) // 2
        return _xor(both[:half], both[half:]).decode()
    except ValueError:
        return None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def _bind_csrf(signed_in: SignedIn | None) -> None:
    """Derive the CSRF secret from the user's session.

    It is not read from the cookie: a cookie and a token that belong together but come from another
    session are refused.
    """
    if signed_in is None:
        return
    session_id = signed_in.session.id if signed_in.session else signed_in.token_id
    secrets = [
        hmac.new(key.encode(), b"csrf " + session_id.bytes, "sha256").hexdigest()
        for key in context.services().secret_keys
    ]
    if session.get(cookies.CSRF_FIELD) not in secrets:
        session[cookies.CSRF_FIELD] = secrets[-1]
        g.pop(cookies.CSRF_FIELD, None)  # Where Flask-WTF keeps a token that it has made.
        g.pop(_MASKED, None)


def clear_csrf() -> None:
    """Delete the CSRF secret, so that one planted before a sign-in is useless after it."""
    session.pop(cookies.CSRF_FIELD, None)
    g.pop(cookies.CSRF_FIELD, None)
    g.pop(_MASKED, None)


def _page_blueprints() -> frozenset[str]:
    # Imported here to avoid a cycle.
    from portal.web import BLUEPRINTS

    return frozenset(blueprint.name for blueprint in BLUEPRINTS)


def add_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
    # A page is for one user only, and each address may also return a fragment.
    response.headers.setdefault("Cache-Control", "no-store")
    if response.mimetype == "text/html":
        response.vary.update(["HX-Request", "Cookie", "Accept-Language"])
    return response


def local_path(address: str | None) -> str | None:
    """Return `address` if it is a path on this portal, else None: it may lead to another site."""
    if not address or not address.startswith("/") or address.startswith("//"):
        return None
    if "\\" in address or any(ord(character) < ord(" ") for character in address):
        return None
    if len(address) > MAX_PATH_CHARACTERS:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return None if parts.scheme or parts.netloc else address


def next_path() -> str | None:
    """Return the path in the field `next` of the form or address, if it is on this portal."""
    return local_path(request.values.get("next"))


def referring_path() -> str | None:
    """Return the path and query of the referring page, if it is on this portal."""
    address = request.headers.get("HX-Current-URL") or request.referrer
    if not address:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.netloc != request.host:
        return None
    return local_path(parts._replace(scheme="", netloc="", fragment="").geturl())
