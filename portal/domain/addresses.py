"""Addresses of pages for programs, and of clients."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import quote
from uuid import UUID

_MAX_QUERY_CHARACTERS = 200
# What one customer of a provider is given, to take addresses from as they like.
_IPV6_NETWORK = 64
_MAX_CLIENT_CHARACTERS = 100


def chunk_url(document_id: UUID, chunk_id: UUID, query: str | None = None) -> str:
    """Return the page that opens a document at a chunk, with the words of a query highlighted."""
    words = "" if query is None else f"&q={_quote(query[:_MAX_QUERY_CHARACTERS])}"
    return f"/documents/{document_id}?chunk={chunk_id}{words}#chunk-{chunk_id}"


@lru_cache(maxsize=64)
def _quote(words: str) -> str:
    # All results of a search carry the same words.
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
