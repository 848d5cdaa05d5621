"""Whom a limit counts: the person, else the address; for sign-in also the name that is tried.

What goes into a key is a digest where a stranger chose it: somebody types a password where the name
belongs, and a name holds whatever separates the parts of a key.
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


def who_asks() -> str:
    """The person, wherever they ask from; the address of a stranger."""
    try:
        found = context.signed_in()
    except PortalError:
        # Without a database nobody is known; what needs no database still answers.
        found = None
    return f"person {found.user.id}" if found is not None else address()


def address() -> str:
    """Where a request comes from: an address of IPv4 or a network of IPv6.

    Forged `X-Forwarded-For` changes nothing: werkzeug's ProxyFix reads it only as far as our own
    proxies wrote it, and not at all without `trusted_proxies`.
    """
    return client_network(request.remote_addr or "nowhere")


def tried_name() -> str:
    """Return the digest of the name that a sign-in tries."""
    return digest_name(read_credentials().name)


def digest_name(name: str) -> str:
    """Return a digest that is the same for all spellings of a normalised name."""
    spelling = accounts.fold_name(name)[:_NAME_CHARACTERS]
    # By the oldest key: counts and device cookies outlast a rotation.
    key = context.services().secret_keys[0].encode()
    return hmac.new(key, spelling.encode(), "sha256").hexdigest()[:32]
