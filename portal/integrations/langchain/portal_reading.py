"""Functions for the portal's retriever and vector store: they open the reader, build search
requests, and return documents that an answer can cite.

Every call applies the selection: documents that are deleted, not visible to the user, or switched
off for the user or in the conversation, are neither found nor counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from langchain_core.documents import Document

from portal.domain.addresses import chunk_url
from portal.domain.people import User
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS, SearchRequest
from portal.errors import InvalidInput, NoSuchAccount, NotFound
from portal.integrations.connection import Connection, open_services
from portal.integrations.langchain.arguments import Query, Where
from portal.integrations.values import checked_count, record_filter, vector_of
from portal.services import Services
from portal.services.collections.portal_reader import PortalReader, ReadChunk
from portal.text.characters.storable import storable

# Fields of a document, not of a chunk's metadata: searches have separate conditions for them.
_DOCUMENT_FIELDS = ("domain", "content_type")


def open_reader(
    user: str | User, conversation: UUID | str | None, connection: Connection | Services | None
) -> PortalReader:
    wanted = None if conversation is None else as_uuid(str(conversation))
    if conversation is not None and wanted is None:
        raise ValueError(f"a conversation is named by its id, a UUID; got {conversation!r}")
    return PortalReader(open_services(connection), user, wanted)


@contextmanager
def translate_reader_errors(reader: PortalReader) -> Iterator[None]:
    """Raise ValueError for errors of the reader's caller, as LangChain's stores do."""
    try:
        yield
    except InvalidInput as error:
        raise ValueError(error.reason) from error
    except NoSuchAccount as error:
        raise ValueError(str(error)) from error
    except NotFound as error:
        raise ValueError(
            f"the user has no conversation {reader.conversation_id}, or a document or a folder of "
            "the scope is not there for the user"
            if reader.conversation_id
            else "a document or a folder of the scope is not there for the user"
        ) from error


def search_request(query: Query, k: int | None, where: Where | None = None) -> SearchRequest:
    """Return the search for a query or a vector. The query is plain text, without operators."""
    fields = {name: value for name, value in (where or {}).items() if name in _DOCUMENT_FIELDS}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} takes a plain value, not a condition; got {value!r}")
    others = {name: value for name, value in (where or {}).items() if name not in fields}
    if k is not None:
        k = checked_count(k, "k", min_value=1, max_value=MAX_RESULTS)
    if isinstance(query, str) and len(query) > MAX_QUERY_CHARACTERS:
        raise ValueError(f"a query has at most {MAX_QUERY_CHARACTERS} characters")
    return SearchRequest(
        storable(query) if isinstance(query, str) else "",
        query_vector=None if isinstance(query, str) else tuple(vector_of(query).tolist()),
        top_n=k,
        operators=False,
        metadata=record_filter(where=others).metadata,
        domain=fields.get("domain"),
        content_type=fields.get("content_type"),
    )


def as_uuid(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None


def to_documents(reader: PortalReader, found: Sequence[ReadChunk]) -> list[Document]:
    site = reader.services.settings.public_url
    return [_to_document(site, place, one) for place, one in enumerate(found, 1)]


def _to_document(site: str, place: int, found: ReadChunk) -> Document:
    """Return a chunk as a document that an answer can cite. Its `citation` has the fields of a
    citation in the JSON API, with the position among these results as `marker`."""
    chunk, hit = found.chunk, found.hit
    url = site + chunk_url(chunk.document_id, chunk.id)
    location = {"page": chunk.page, "page_label": chunk.page_label, "heading": chunk.heading}
    scores: dict[str, Any] = {}
    if hit is not None:
        scores = {
            "score": hit.score,
            "vector_score": hit.vector_score,
            "text_score": hit.text_score,
            "confidence": hit.confidence,
            "low_confidence": hit.low_confidence,
        }
    citation = {
        "marker": place,
        "document_id": str(chunk.document_id),
        "revision_id": str(chunk.revision_id) if chunk.revision_id else None,
        "chunk_id": str(chunk.id),
        "title": chunk.title,
        "excerpt": chunk.content,
        "char_start": chunk.char_start,
        "char_end": chunk.char_end,
        **location,
        **scores,
        "url": url,
        "quote_sha256": hashlib.sha256(chunk.content.encode()).hexdigest(),
    }
    metadata = {
        **chunk.metadata,
        "document_id": str(chunk.document_id),
        "title": chunk.title,
        "source": url,
        "content_type": chunk.media_type,
        "domain": chunk.domain,
        "language": chunk.language,
        **location,
        "visibility": chunk.visibility,
        "selection": found.selected_by.value,
        **scores,
        "citation": citation,
    }
    if hit is not None:
        metadata["found_by"] = hit.source.value
    return Document(id=str(chunk.id), page_content=chunk.content, metadata=metadata)
