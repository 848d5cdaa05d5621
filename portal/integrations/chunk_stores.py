"""Open stores of chunks, in PostgreSQL or in Chroma."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from portal.domain.embedding import Embedder
from portal.domain.search.bm25 import Bm25Parameters
from portal.integrations.chroma.chunks import ChromaChunks, LexicalLeg
from portal.integrations.chroma.client import DEFAULT_PORT, Client, open_directory, open_server
from portal.integrations.chunk_store import SemanticChunkStore
from portal.integrations.connection import Connection, connect, portal_model
from portal.integrations.postgres_chunks import PostgresChunks
from portal.services.collections.records import Collections
from portal.settings import Settings, load_settings

DEFAULT_COLLECTION = "content_chunks"


def open_chunk_store(
    backend: Literal["postgresql", "chroma"], collection: str = DEFAULT_COLLECTION, **options: Any
) -> SemanticChunkStore:
    """Open a collection in PostgreSQL or Chroma; `options` are those of `open_postgresql` and
    `open_chroma`. Raises ValueError for another backend."""
    if backend == "postgresql":
        return open_postgresql(collection, **options)
    if backend == "chroma":
        return open_chroma(collection, **options)
    raise ValueError(f"a chunk store is in postgresql or chroma; got {backend!r}")


def open_postgresql(
    collection: str = DEFAULT_COLLECTION,
    *,
    connection: Connection | None = None,
    embedder: Embedder | None = None,
    hybrid: bool | None = None,
) -> SemanticChunkStore:
    """Open a collection in the portal's database. `connection` is a URL, settings or a Database,
    by default this machine's settings. `embedder` defaults to the portal's model, and `hybrid` to
    USE_HYBRID_SEARCH. Raises ServerSetup, ValueError."""
    database, settings = connect(connection)
    backend = PostgresChunks(Collections(database, settings.search), collection)
    return _make_store(backend, embedder, hybrid, settings)


def open_chroma(
    collection: str = DEFAULT_COLLECTION,
    *,
    directory: Path | str | None = None,
    host: str | None = None,
    port: int = DEFAULT_PORT,
    ssl: bool = False,
    headers: Mapping[str, str] | None = None,
    client: Client | None = None,
    embedder: Embedder | None = None,
    hybrid: bool | None = None,
    lexical: LexicalLeg | None = None,
    settings: Settings | None = None,
) -> SemanticChunkStore:
    """Open a collection in Chroma: in a `directory`, on a server at `host`, or by a `client`. With
    ``own`` as `lexical`, words are ranked here if Chroma cannot; it defaults to
    PORTAL_CHROMA__LEXICAL_LEG. Raises ServerSetup, ValueError."""
    if sum(place is not None for place in (directory, host, client)) != 1:
        raise ValueError("pass exactly one of `directory`, `host` and `client`")
    settings = settings or load_settings()
    if directory is not None:
        client = open_directory(directory)
    elif host is not None:
        client = open_server(host, port, ssl=ssl, headers=headers)
    backend = ChromaChunks(
        client,
        collection,
        hybrid=settings.hybrid_semantic_search if hybrid is None else hybrid,
        lexical=settings.chroma.lexical_leg if lexical is None else lexical,
        parameters=Bm25Parameters(settings.search.bm25_k1, settings.search.bm25_b),
    )
    return _make_store(backend, embedder, hybrid, settings)


def _make_store(
    backend: PostgresChunks | ChromaChunks,
    embedder: Embedder | None,
    hybrid: bool | None,
    settings: Settings,
) -> SemanticChunkStore:
    return SemanticChunkStore(
        backend,
        embedder or portal_model(settings),
        hybrid=settings.hybrid_semantic_search if hybrid is None else hybrid,
    )
