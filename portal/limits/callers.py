"""Whom a limit counts: the person, else the address; for sign-in also the name that is tried.

What goes into a key is a digest where a stranger chose it: somebody types a password where the name
belongs, and a name holds whatever separates the parts of a key.
"""

from __future__ import annotations

import hmac
import ipaddress

from flask import request

from portal.errors import PortalError
from portal.http import context
from portal.http.credentials import read_credentials
from portal.services.people import accounts

# What one customer of a provider is given, to take addresses from as they like.
_IPV6_NETWORK = 64
_NAME_CHARACTERS = 100


def who_asks() -> str:
    """The person, wherever they ask from; the address of a stranger."""
    try:
        found = context.signed_in()
    except PortalError:
        # Without a database nobody is known; what needs no database still answers.
        found = None
    return f"person {found.person.id}" if found is not None else address()


def address() -> str:
    """Where a request comes from: an address of IPv4 or a network of IPv6.

    Forged `X-Forwarded-For` changes nothing: werkzeug's ProxyFix reads it only as far as our own
    proxies wrote it, and not at all without `trusted_proxies`.
    """
    given = request.remote_addr or "nowhere"
    try:
        found = ipaddress.ip_address(given.partition("%")[0])
    except ValueError:
        # A socket file, or whatever else a proxy that we trust calls its client.
        return given[:_NAME_CHARACTERS]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)


def tried_name() -> str:
    """Return the digest of the name that a sign-in tries."""
    return digest_name(read_credentials().name)


def digest_name(name: str) -> str:
    """Return a digest that is the same for all spellings of a normalised name."""
    spelling = accounts.fold_name(name)[:_NAME_CHARACTERS]
    key = context.services().secret_key.encode()
    return hmac.new(key, spelling.encode(), "sha256").hexdigest()[:32]
