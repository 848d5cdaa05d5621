"""The client of a request, as sessions record it."""

from __future__ import annotations

import secrets
from ipaddress import ip_address

from flask import request
from werkzeug.wrappers import Response

from portal.domain.people import Client
from portal.http import cookies

_FORWARDING = (
    *("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"),
    "X-Real-IP",
)
_BROWSER_LIFE_S = 400 * 24 * 3600  # The longest that browsers keep a cookie.
_MAX_ADDRESS_CHARACTERS = 100
_MAX_BROWSER_ID_CHARACTERS = 100


def current_address() -> str | None:
    """Return the address that the request comes from, as our own proxies report it."""
    return (request.remote_addr or "")[:_MAX_ADDRESS_CHARACTERS] or None


def current_client() -> Client:
    """Return the client of an API request, which keeps no cookies."""
    return Client(address=current_address(), user_agent=_user_agent())


def identify_browser(response: Response) -> Client:
    """Return the client with this browser's id, which `response` stores in a cookie."""
    known = cookies.get_cookie(cookies.BROWSER) or ""
    browser_id = known[:_MAX_BROWSER_ID_CHARACTERS] or secrets.token_urlsafe(24)
    cookies.set_cookie(response, cookies.BROWSER, browser_id, max_age=_BROWSER_LIFE_S)
    return Client(address=current_address(), user_agent=_user_agent(), browser_id=browser_id)


def _user_agent() -> str:
    return request.headers.get("User-Agent", "").replace("\0", "")


def is_from_this_machine(*, trusted_proxies: int) -> bool:
    """Return whether a program on this machine sent the request, and no proxy passed it on."""
    # A proxy on this machine forwards requests from anywhere, and adds one of these headers.
    if not trusted_proxies and any(name in request.headers for name in _FORWARDING):
        return False
    try:
        return ip_address(request.remote_addr or "").is_loopback
    except ValueError:
        return False
