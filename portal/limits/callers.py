"""Keys that limits count by: the user, else the address; for sign-in, also the name tried.

Names are digested: a user may type a password into the name field, and a name may contain the
separator of a key's parts.
"""

from __future__ import annotations

import hmac

from flask import request

from portal.domain.addresses import client_network
from portal.errors import PortalError
from portal.http import context
from portal.http.credentials import read_credentials
from portal.services.people import accounts

_NAME_CHARACTERS = 100


def caller_key() -> str:
    """Return the key of the signed-in user, else of the address."""
    try:
        found = context.signed_in()
    except PortalError:
        # Without a database no user is known; endpoints that need none still answer.
        found = None
    return f"user {found.user.id}" if found is not None else address()


def address() -> str:
    """Return the request's IPv4 address or IPv6 network.

    A forged `X-Forwarded-For` changes nothing: ProxyFix reads only what `trusted_proxies` proxies
    wrote.
    """
    return client_network(request.remote_addr or "nowhere")


def tried_name() -> str:
    """Return the digest of the name that a sign-in tries."""
    return digest_name(read_credentials().name)


def digest_name(name: str) -> str:
    """Return a digest that is the same for all spellings of a normalised name."""
    spelling = accounts.fold_name(name)[:_NAME_CHARACTERS]
    # With the oldest key, so that counts and device cookies survive a rotation.
    key = context.services().secret_keys[0].encode()
    return hmac.new(key, spelling.encode(), "sha256").hexdigest()[:32]
