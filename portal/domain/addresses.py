"""Addresses of pages that answers to programs point to."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

_MOST_QUERY_CHARACTERS = 200


def passage_url(document_id: UUID, chunk_id: UUID, query: str | None = None) -> str:
    """The page that opens a document at a passage, with the words of a query lit up."""
    words = "" if query is None else f"&q={quote(query[:_MOST_QUERY_CHARACTERS], safe='')}"
    return f"/documents/{document_id}?chunk={chunk_id}{words}#chunk-{chunk_id}"
