"""Clean, embed and search chunks over any backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from portal.domain.embedding import Embedder, Vector
from portal.domain.search.semantic import (
    ChunkBackend,
    SemanticChunk,
    SemanticHit,
    SemanticOutcome,
)
from portal.domain.vector_collections import Page
from portal.errors import InvalidInput
from portal.integrations.values import (
    checked_count,
    checked_ids,
    clean_metadata,
    clean_text,
    document_name,
    vector_of,
)
from portal.services.collections.checks import common_length, require_distinct
from portal.services.search.programs.semantic import DEFAULT_LIMIT, SemanticSearch

CONTENT_TYPE = "content_type"
"""The metadata key that `content_type` of a search is compared with."""

DOCUMENT_KEY = "document_id"
"""The metadata key of a chunk's document; without it, the chunk is its own document."""


class SemanticChunkStore(SemanticSearch):
    """Chunks in a backend, embedded by `embedder`. Safe to share between threads."""

    _backend: ChunkBackend
    _embedder: Embedder

    def __init__(self, backend: ChunkBackend, embedder: Embedder, *, hybrid: bool) -> None:
        super().__init__(backend, embedder, hybrid=hybrid)

    def search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> SemanticOutcome:
        """Search as `SemanticSearch` does, for any text: characters that cannot be stored are
        replaced first."""
        if content_type is not None:
            content_type = clean_text(content_type)
        return super().search(clean_text(query), limit, threshold, content_type)

    def upsert(self, chunks: Iterable[SemanticChunk]) -> None:
        """Store chunks, replacing those with the same ids. Chunks without a vector are embedded.
        Raises ValueError, EmbedderUnavailable."""
        cleaned = [_clean(chunk) for chunk in chunks]
        if not cleaned:
            return
        whole = self._embed(cleaned)
        try:
            require_distinct([chunk.id for chunk in whole])
            common_length([chunk.vector for chunk in whole if chunk.vector is not None])
        except InvalidInput as error:
            raise ValueError(error.reason) from error
        self._backend.upsert(whole)

    def get(
        self,
        ids: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[SemanticChunk]:
        """Return the chunks with these ids in the given order, or without ids all chunks in
        insertion order; of these `limit` from `offset` on. Raises ValueError."""
        offset = checked_count(offset, "offset", min_value=0)
        limit = None if limit is None else checked_count(limit, "limit", min_value=0)
        if ids is None:
            page = Page(limit, offset, with_vectors=with_vectors)
            return self._backend.get(None, page) if limit != 0 else []
        wanted = list(dict.fromkeys(checked_ids(ids)))
        if not wanted:
            return []
        page = Page(with_vectors=with_vectors)
        found = {chunk.id: chunk for chunk in self._backend.get(wanted, page)}
        ordered = [found[chunk_id] for chunk_id in wanted if chunk_id in found]
        return ordered[offset : None if limit is None else offset + limit]

    def delete(self, ids: str | Sequence[str]) -> int:
        """Delete chunks and return how many existed. Raises ValueError."""
        named = list(dict.fromkeys(checked_ids(ids)))
        return self._backend.delete(named) if named else 0

    def count(self) -> int:
        return self._backend.count()

    def _embed(self, chunks: Sequence[SemanticChunk]) -> list[SemanticChunk]:
        """Embed the chunks that have no vector."""
        bare = [chunk for chunk in chunks if chunk.vector is None]
        texts = [chunk.content or "" for chunk in bare]
        vectors = iter(self._embedder.embed_chunks(texts) if bare else ())
        return [
            chunk if chunk.vector is not None else replace(chunk, vector=next(vectors))
            for chunk in chunks
        ]


def _clean(chunk: SemanticChunk) -> SemanticChunk:
    """Return a chunk that every backend can store: without NUL and without None in metadata."""
    metadata = clean_metadata(chunk.metadata)
    return SemanticChunk(
        checked_ids(chunk.id)[0],
        clean_text("" if chunk.content is None else chunk.content),
        {key: value for key, value in metadata.items() if value is not None},
        None if chunk.vector is None else vector_of(chunk.vector),
    )


def found(chunk: SemanticChunk, query_vector: Vector | None = None) -> SemanticHit:
    """Return a chunk as a hit, with its cosine if there are both vectors."""
    similarity = None
    if query_vector is not None and chunk.vector is not None:
        similarity = cosine(chunk.vector, query_vector)
    document = document_name(chunk.metadata, DOCUMENT_KEY) or chunk.id
    return SemanticHit(chunk.id, document, chunk.content or "", chunk.metadata, similarity)


def nearest_first(chunks: Iterable[SemanticChunk], query_vector: Vector) -> list[SemanticHit]:
    """Return hits ordered by cosine: another program's collection may use another distance."""
    near = [found(chunk, query_vector) for chunk in chunks]
    return sorted(near, key=lambda one: -(one.similarity or 0.0))


def similarities(chunks: Iterable[SemanticChunk], query_vector: Vector) -> dict[str, float]:
    """Return the cosine of each chunk that has a vector, by its id."""
    return {
        chunk.id: cosine(chunk.vector, query_vector) for chunk in chunks if chunk.vector is not None
    }


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors (dimensions,); 0 if one is zero, as in searches of
    PostgreSQL. Raises ValueError for different dimensions."""
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(one @ other) / lengths if lengths > 0 else 0.0
