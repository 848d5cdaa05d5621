"""URLs of pages, and addresses of clients."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import quote
from uuid import UUID

DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_QUERY_CHARACTERS = 200
# Providers give each customer a network of this size, and any address in it may be used.
_IPV6_NETWORK = 64
_MAX_CLIENT_CHARACTERS = 100
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def plain_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    last = int(address) % 2**32
    if address in _NAT64 or (address in _COMPATIBLE and last > 1):
        return ipaddress.IPv4Address(last)
    return address.ipv4_mapped or address


def chunk_url(document_id: UUID, chunk_id: UUID, query: str | None = None) -> str:
    """Return the URL that opens a document at a chunk, with the words of a query highlighted."""
    words = "" if query is None else f"&q={_quote(query[:_MAX_QUERY_CHARACTERS])}"
    return f"/documents/{document_id}?chunk={chunk_id}{words}#chunk-{chunk_id}"


@lru_cache(maxsize=64)
def _quote(words: str) -> str:
    # Cached, since all results of a search have the same words.
    return quote(words, safe="")


def client_network(address: str) -> str:
    """Return the key of a client for limits: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        # A socket file, or another name that a trusted proxy gives its client.
        return address[:_MAX_CLIENT_CHARACTERS]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)
