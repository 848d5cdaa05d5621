"""Addresses of pages that programs are pointed to, and of clients."""

from __future__ import annotations

import ipaddress
from urllib.parse import quote
from uuid import UUID

_MAX_QUERY_CHARACTERS = 200
# What one customer of a provider is given, to take addresses from as they like.
_IPV6_NETWORK = 64
_MAX_CLIENT_CHARACTERS = 100


def chunk_url(document_id: UUID, chunk_id: UUID, query: str | None = None) -> str:
    """The page that opens a document at a passage, with the words of a query lit up."""
    words = "" if query is None else f"&q={quote(query[:_MAX_QUERY_CHARACTERS], safe='')}"
    return f"/documents/{document_id}?chunk={chunk_id}{words}#chunk-{chunk_id}"


def client_network(address: str) -> str:
    """What limits take for one client: an address of IPv4, or the /64 network of one of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        # A socket file, or whatever else a trusted proxy calls its client.
        return address[:_MAX_CLIENT_CHARACTERS]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
    return str(found)
