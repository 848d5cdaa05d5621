"""The server's side of the passkey buttons: where passkeys are valid, and their challenges.

A button fetches options, asks the authenticator, and posts its response in an ordinary form.
Meanwhile the challenge is kept in the signed cookie for the browser's forms.
"""

from __future__ import annotations

import base64
import ipaddress
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from flask import Response, request, session

from portal.domain.addresses import DEFAULT_PORTS
from portal.domain.people.second_factors import Challenge, RelyingParty
from portal.errors import PasskeyRefused, PasskeysUnavailable
from portal.http import context
from portal.http.messages import translated

_CHALLENGE = "passkey_challenge"


def current_site() -> RelyingParty:
    """Return the site that passkeys are bound to: PORTAL_PUBLIC_URL if it is set, else the address
    of the request, whose host is trusted. Raises PasskeysUnavailable."""
    settings = context.services().settings
    parts = urlsplit(settings.public_url if settings.has_public_url else request.host_url)
    host, port = (parts.hostname or "").lower(), parts.port
    shown_port = f":{port}" if port and port != DEFAULT_PORTS.get(parts.scheme) else ""
    _require_name(host, f"http://localhost{shown_port}")
    is_local = host == "localhost" or host.endswith(".localhost")
    if parts.scheme != "https" and not is_local:
        raise PasskeysUnavailable("browsers accept passkeys over HTTPS or on localhost only")
    origin = f"{parts.scheme}://{host}{shown_port}"
    asked_at = (urlsplit(request.host_url).hostname or "").lower()
    if asked_at != host:
        raise PasskeysUnavailable("passkeys of this portal work at %(address)s", address=origin)
    return RelyingParty(id=host, origin=origin)


def _require_name(host: str, local_address: str) -> None:
    """Refuse an IP address, which browsers do not accept. Raises PasskeysUnavailable."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if address.is_loopback:
        raise PasskeysUnavailable(
            "browsers accept passkeys for names only, not for IP addresses; open %(address)s",
            address=local_address,
        )
    raise PasskeysUnavailable(
        "browsers accept passkeys for names only, not for IP addresses; set PORTAL_PUBLIC_URL"
    )


def find_site() -> tuple[RelyingParty | None, str | None]:
    """Return the site; or None, and in the reader's language why there is none."""
    try:
        return current_site(), None
    except PasskeysUnavailable as error:
        return None, translated(error.reason)


def send_options(options: str, challenge: Challenge) -> Response:
    """Return the options for the browser, and keep their challenge in its cookie."""
    session[_CHALLENGE] = {
        "value": base64.b64encode(challenge.value).decode(),
        "user": challenge.user_id.hex if challenge.user_id else None,
        "until": challenge.expires_at.isoformat(),
    }
    return Response(options, mimetype="application/json")


def take_challenge() -> Challenge:
    """Return this browser's last challenge, and delete it. Raises PasskeyRefused."""
    kept = session.pop(_CHALLENGE, None)
    try:
        return Challenge(
            value=base64.b64decode(kept["value"]),
            user_id=UUID(kept["user"]) if kept["user"] else None,
            expires_at=datetime.fromisoformat(kept["until"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PasskeyRefused from error
