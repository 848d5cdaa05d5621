"""Store chunks in a program's collection in the portal's database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from portal.domain.embedding import Vector
from portal.domain.search.degraded import KEYWORD_UNAVAILABLE
from portal.domain.search.metadata_filter import parse_filter
from portal.domain.search.semantic import SemanticChunk, SemanticHit
from portal.domain.vector_collections import NewRecord, Page, RecordFilter, StoredRecord
from portal.errors import InvalidInput, NotFound
from portal.integrations.chunk_store import (
    CONTENT_TYPE,
    DOCUMENT_KEY,
    found,
    nearest_first,
    similarities,
)
from portal.integrations.values import document_name, translate_collection_errors
from portal.services.collections.hybrid import ranks_words, search_by_words
from portal.services.collections.records import Collections
from portal.text.terms.analyser import query_terms

Result = TypeVar("Result")


class PostgresChunks:
    """A collection, created with cosine distance if missing."""

    def __init__(self, collections: Collections, collection: str) -> None:
        self._collections = collections
        self._collection = collection
        self._id = self._ensure()

    @property
    def name(self) -> str:
        return f"postgresql:{self._collection}"

    # --- searching ------------------------------------------------------------------------------

    def why_no_sparse(self) -> str | None:
        return None if ranks_words(self._collections) else KEYWORD_UNAVAILABLE

    def dense(
        self, query_vector: Vector, limit: int, content_type: str | None
    ) -> list[SemanticHit]:
        wanted, page = _of_type(content_type), Page(limit, with_vectors=True)
        near = self._on_collection(
            lambda there: self._collections.nearest(there, query_vector, wanted, page)
        )
        return nearest_first(map(_chunk, near), query_vector)

    def sparse(self, query_text: str, limit: int, content_type: str | None) -> list[SemanticHit]:
        if not query_terms(query_text):
            return []
        wanted = _of_type(content_type)
        best = self._on_collection(
            lambda there: search_by_words(self._collections, there, query_text, wanted, limit=limit)
        )
        return [found(_chunk(record)) for record in best]

    def similarities(self, query_vector: Vector, ids: Sequence[str]) -> Mapping[str, float]:
        return similarities(self.get(ids, Page(with_vectors=True)), query_vector)

    # --- storing --------------------------------------------------------------------------------

    def upsert(self, chunks: Sequence[SemanticChunk]) -> None:
        records = [
            NewRecord(
                chunk.id,
                chunk.content or "",
                chunk.metadata,
                chunk.vector,
                document_name(chunk.metadata, DOCUMENT_KEY),
            )
            for chunk in chunks
        ]
        self._on_collection(lambda there: self._collections.upsert(there, records))

    def get(self, ids: Sequence[str] | None, page: Page) -> list[SemanticChunk]:
        wanted = RecordFilter(ids=None if ids is None else tuple(ids))
        records = self._on_collection(lambda there: self._collections.records(there, wanted, page))
        return [_chunk(record) for record in records]

    def delete(self, ids: Sequence[str]) -> int:
        wanted = RecordFilter(ids=tuple(ids))
        return self._on_collection(lambda there: self._collections.delete(there, wanted))

    def count(self) -> int:
        return self._on_collection(self._collections.count)

    # --- inside ---------------------------------------------------------------------------------

    def _ensure(self) -> UUID:
        with translate_collection_errors(self._collection):
            return self._collections.ensure(self._collection, "cosine", {}).id

    def _on_collection(self, action: Callable[[UUID], Result]) -> Result:
        """Run `action` on the collection, which is created again if another program dropped it."""
        try:
            with translate_collection_errors(self._collection):
                return action(self._id)
        except ValueError as error:
            if not isinstance(error.__cause__, NotFound):
                raise
        self._id = self._ensure()
        with translate_collection_errors(self._collection):
            return action(self._id)


def _of_type(content_type: str | None) -> RecordFilter:
    if content_type is None:
        return RecordFilter()
    try:
        return RecordFilter(metadata=parse_filter({CONTENT_TYPE: content_type}, dotted=False))
    except InvalidInput:
        # Too long for a filter, and longer than any content type: nothing matches.
        return RecordFilter(ids=())


def _chunk(record: StoredRecord) -> SemanticChunk:
    return SemanticChunk(record.id, record.content, record.metadata, record.vector)
