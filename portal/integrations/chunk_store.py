"""`ChunkStore` over any backend: cleaning, embedding and searching stand here, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from portal.domain.embedding import Embedder, Vector
from portal.domain.semantic import (
    ChunkBackend,
    ChunkSlice,
    HybridStatus,
    SemanticChunk,
    SemanticHit,
    SemanticOutcome,
    SemanticResult,
)
from portal.errors import InvalidInput
from portal.integrations.values import checked_ids, clean_metadata, clean_text, vector_of
from portal.services.collections.checks import common_length, require_distinct
from portal.services.search.semantic import DEFAULT_LIMIT, SemanticSearch

CONTENT_TYPE = "content_type"
"""The metadata that `content_type` of a search is compared with."""

DOCUMENT_KEY = "document_id"
"""The metadata that says which document a passage belongs to; without it, it is one by itself."""


class SemanticChunkStore:
    """Passages in a backend, embedded by `embedder`. `hybrid` is the wish; what comes of it is in
    `status`. Safe to share between threads."""

    def __init__(self, backend: ChunkBackend, embedder: Embedder, *, hybrid: bool) -> None:
        self._backend = backend
        self._embedder = embedder
        self._hybrid = hybrid
        self._searching()  # Says in the log how it is searched.

    # --- searching ------------------------------------------------------------------------------

    @property
    def status(self) -> HybridStatus:
        return self._searching().status

    def is_hybrid_search_enabled(self) -> bool:
        return self.status.is_enabled

    def semantic_search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> list[SemanticResult]:
        """The best passages: at most `limit` (less than 1 counts as 5), of a cosine of `threshold`
        or more, whose metadata has this `content_type`; none for an empty question.

        Of a hybrid search a leg that fails is left out. Raises what embedder or backend raise when
        there is no other leg, Unavailable when both fail.
        """
        return list(self.search(query, limit, threshold, content_type).results)

    def search(
        self,
        query: str,
        limit: int = DEFAULT_LIMIT,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> SemanticOutcome:
        """As `semantic_search`, and by which method, and what was done without."""
        if content_type is not None:
            content_type = clean_text(content_type)
        return self._searching().search(clean_text(query), limit, threshold, content_type)

    def _searching(self) -> SemanticSearch:
        # Anew each time: an index of words may come and go while the store is open.
        return SemanticSearch(self._backend, self._embedder, hybrid=self._hybrid)

    # --- keeping --------------------------------------------------------------------------------

    def upsert(self, chunks: Iterable[SemanticChunk]) -> None:
        """Keep passages, each whole in the place of the one with its id; those without a vector
        are embedded. Raises ValueError for what cannot be kept, EmbedderUnavailable."""
        cleaned = [_cleaned(chunk) for chunk in chunks]
        if not cleaned:
            return
        whole = self._embedded(cleaned)
        try:
            require_distinct([chunk.id for chunk in whole])
            common_length([chunk.vector for chunk in whole if chunk.vector is not None])
        except InvalidInput as error:
            raise ValueError(error.params["reason"]) from error
        self._backend.upsert(whole)

    def get(
        self,
        ids: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[SemanticChunk]:
        """The passages of these ids in the order asked, those that are not there left out; or
        without ids all, `limit` from `offset` on, in the order in which they were first kept.
        Raises ValueError."""
        if offset < 0 or (limit is not None and limit < 0):
            raise ValueError("limit and offset must not be negative")
        if ids is None:
            page = ChunkSlice(limit, offset, with_vectors=with_vectors)
            return self._backend.get(None, page) if limit != 0 else []
        wanted = list(dict.fromkeys(checked_ids(ids)))
        if not wanted:
            return []
        page = ChunkSlice(with_vectors=with_vectors)
        found = {chunk.id: chunk for chunk in self._backend.get(wanted, page)}
        asked = [found[one] for one in wanted if one in found]
        return asked[offset : None if limit is None else offset + limit]

    def delete(self, ids: str | Sequence[str]) -> int:
        """Erase passages; how many there were of them. Raises ValueError."""
        named = list(dict.fromkeys(checked_ids(ids)))
        return self._backend.delete(named) if named else 0

    def count(self) -> int:
        return self._backend.count()

    def _embedded(self, chunks: Sequence[SemanticChunk]) -> list[SemanticChunk]:
        """The passages, those without a vector with the embedder's."""
        bare = [chunk for chunk in chunks if chunk.vector is None]
        texts = [chunk.content or "" for chunk in bare]
        vectors = iter(self._embedder.embed_chunks(texts) if bare else ())
        return [
            chunk if chunk.vector is not None else replace(chunk, vector=next(vectors))
            for chunk in chunks
        ]


def _cleaned(chunk: SemanticChunk) -> SemanticChunk:
    """As every backend can store it: nothing in it that PostgreSQL has no place for, and no
    metadata of None, which Chroma has no place for."""
    metadata = clean_metadata(chunk.metadata)
    return SemanticChunk(
        checked_ids(chunk.id)[0],
        clean_text("" if chunk.content is None else chunk.content),
        {key: value for key, value in metadata.items() if value is not None},
        None if chunk.vector is None else vector_of(chunk.vector),
    )


def named_document(metadata: Mapping[str, Any]) -> str | None:
    """Which document a passage says that it belongs to."""
    named = metadata.get(DOCUMENT_KEY)
    return str(named) if isinstance(named, str | int) and named != "" else None


def found(chunk: SemanticChunk, query_vector: Vector | None = None) -> SemanticHit:
    """A passage as a search finds it, with its cosine where a vector was asked for and it has
    one."""
    similarity = None
    if query_vector is not None and chunk.vector is not None:
        similarity = cosine(chunk.vector, query_vector)
    document = named_document(chunk.metadata) or chunk.id
    return SemanticHit(chunk.id, document, chunk.content or "", chunk.metadata, similarity)


def nearest_first(chunks: Iterable[SemanticChunk], query_vector: Vector) -> list[SemanticHit]:
    """What a backend found near, by cosine: a collection that was made by another program may rank
    by another distance."""
    near = [found(chunk, query_vector) for chunk in chunks]
    return sorted(near, key=lambda one: -(one.similarity or 0.0))


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two vectors (dimensions,): 0 with one of no length, as PostgreSQL's searches
    have it. Raises ValueError for vectors of different length."""
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(one @ other) / lengths if lengths > 0 else 0.0
