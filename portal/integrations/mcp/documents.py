"""Search and fetch documents, in the fields that ChatGPT's and Claude's connectors expect.

A result is a document, but has the id of its best chunk: if the document is long, fetching that id
returns the part with the answer, and its address opens the page there.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from portal.domain.addresses import chunk_url
from portal.domain.answering import Source
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import MAX_QUERY_CHARACTERS, SearchRequest, Unit
from portal.errors import NotFound
from portal.services import Services
from portal.services.documents import private_reads
from portal.services.search import engine
from portal.store.answers import sources
from portal.store.documents.texts import chunks as chunk_store
from portal.store.session import Session
from portal.text.characters.storable import storable

# Longer than any of our ids; longer ones are not looked up.
_MAX_ID_CHARACTERS = 1000
_LENGTH_OF_ID = 36
_MAX_IN_SCOPE = 100


class Arguments(BaseModel):
    """Refuse unknown names, so that a mistyped scope does not search everything."""

    model_config = ConfigDict(extra="forbid")


class ScopeArguments(Arguments):
    documents: list[UUID] = Field([], max_length=_MAX_IN_SCOPE, description="Ids of documents.")
    folders: list[UUID] = Field(
        [], max_length=_MAX_IN_SCOPE, description="Ids of folders, with what lies below them."
    )
    tags: list[str] = Field([], max_length=_MAX_IN_SCOPE)


class SearchArguments(Arguments):
    query: str = Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="A question or key words, in Chinese or English, in plain language.",
    )
    scope: ScopeArguments | None = Field(
        None, description="Search these documents, folders and tags only."
    )


class FetchArguments(Arguments):
    id: str = Field(
        min_length=1,
        max_length=_MAX_ID_CHARACTERS,
        description="The id of a search result, or of a document.",
    )


class SearchResult(BaseModel):
    id: str = Field(description="What `fetch` takes.")
    title: str
    url: str = Field(description="The page that opens the document where it answers.")


class SearchResults(BaseModel):
    results: list[SearchResult] = Field(description="Documents, best first.")


class FetchedDocument(BaseModel):
    id: str
    title: str
    text: str = Field(description="The document's text, or of a long one the part around `id`.")
    url: str
    metadata: dict[str, Any] = Field(
        description="Among others `passage`, the words that were found, and `truncated`: whether "
        "`text` is characters `char_start` to `char_end` alone."
    )


def search(services: Services, user: User, arguments: SearchArguments) -> SearchResults:
    """Search the documents that the user may see and has enabled. The query is plain text. Raises
    what `engine.search` raises."""
    scope = arguments.scope or ScopeArguments()
    request = SearchRequest(
        storable(arguments.query),
        operators=False,
        one_hit_per=Unit.DOCUMENT,
        scope=AskScope(
            tuple(scope.documents), tuple(scope.folders), tuple(map(storable, scope.tags))
        ),
    )
    found = engine.search(services, user, request)
    return SearchResults(
        results=[
            SearchResult(
                id=str(hit.chunk_id),
                title=hit.title,
                url=_page(services, hit.document_id, hit.chunk_id),
            )
            for hit in found.hits
        ]
    )


def fetch(services: Services, user: User, arguments: FetchArguments) -> FetchedDocument:
    """Return a document's text as indexed, by the id of one of its chunks or by its own.

    If the text is longer than the settings allow, return the part around the chunk. Raises NotFound
    for a document that does not exist, is in the trash, is not visible to the user, or is switched
    off.
    """
    wanted = _read_id(arguments.id)
    with services.database.read() as session:
        chunk = _find_chunk(session, user, wanted)
        text, start, is_cut = _text_around(session, chunk, services.settings.mcp.fetch_characters)
    private_reads.record(services, user, [chunk.document_id], found=False)
    return FetchedDocument(
        id=arguments.id,
        title=chunk.title,
        text=text,
        url=_page(services, chunk.document_id, chunk.chunk_id),
        metadata=_metadata(chunk)
        | {"truncated": is_cut, "char_start": start, "char_end": start + len(text)},
    )


def _read_id(text: str) -> UUID:
    try:
        # UUID accepts more spellings than the one that we return.
        return UUID(text if len(text) == _LENGTH_OF_ID else "")
    except ValueError as error:
        raise NotFound from error


def _find_chunk(session: Session, user: User, wanted: UUID) -> Source:
    """Return the chunk with that id, or the first of that document, if the user may read it."""
    found = sources.read_sources(session, user, None, [wanted])
    if not found:
        first, _total = chunk_store.list_chunks(session, wanted, limit=1, offset=0)
        found = sources.read_sources(session, user, None, [one.id for one in first])
    for chunk in found.values():
        return chunk
    raise NotFound


def _text_around(session: Session, chunk: Source, max_characters: int) -> tuple[str, int, bool]:
    """Return the text around the chunk, where it starts, and whether it was cut."""
    start = (
        0 if chunk.char_end <= max_characters else max(0, chunk.char_start - max_characters // 2)
    )
    # One character more than is shown tells whether the text continues.
    stored = chunk_store.read_text(
        session, chunk.document_id, start=start, end=start + max_characters + 1
    )
    if chunk.revision_id is None or stored is None:
        # A chunk added by a program has no text around it.
        return chunk.text[:max_characters], 0, len(chunk.text) > max_characters
    text = stored[1]
    return text[:max_characters], start, start > 0 or len(text) > max_characters


def _metadata(chunk: Source) -> dict[str, Any]:
    known = {
        "document_id": str(chunk.document_id),
        "content_type": chunk.media_type,
        "language": chunk.language,
        "passage": chunk.text,
        "page": chunk.page,
        "page_label": chunk.page_label,
        "heading": chunk.heading,
    }
    return {name: value for name, value in known.items() if value is not None}


def _page(services: Services, document_id: UUID, chunk_id: UUID) -> str:
    """Return the address of the page that shows the chunk."""
    return services.settings.public_url + chunk_url(document_id, chunk_id)
