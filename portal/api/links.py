"""Addresses of pages that JSON points to."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

_MOST_QUERY_CHARACTERS = 200


def passage_url(document_id: UUID, chunk_id: UUID, query: str) -> str:
    """The page that opens a document at a passage, with the words of the query lit up."""
    words = quote(query[:_MOST_QUERY_CHARACTERS], safe="")
    return f"/documents/{document_id}?chunk={chunk_id}&q={words}#chunk-{chunk_id}"
