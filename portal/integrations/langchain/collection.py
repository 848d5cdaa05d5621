"""A collection with the methods of Chroma, for programs written for Chroma."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from langchain_core.embeddings import Embeddings

from portal.domain.embedding import Vector
from portal.domain.vector_collections import NewRecord, Page, RecordChange, StoredRecord
from portal.integrations.langchain.arguments import Where
from portal.integrations.langchain.results import as_result, checked_include
from portal.integrations.values import (
    checked_count,
    checked_ids,
    clean_metadata,
    clean_text,
    document_name,
    one_or_many,
    record_filter,
    same_length,
    translate_collection_errors,
    vector_of,
    vectors_of,
)
from portal.services.collections.hybrid import hybrid_search
from portal.services.collections.records import Collections
from portal.store.collections.rows import VectorCollection


@dataclass(frozen=True, slots=True)
class Collection:
    """Records by id. `embeddings` returns the model for texts without vectors; `document_key` is
    the metadata key with the name of a record's document."""

    _collections: Collections
    _handle: VectorCollection
    _embeddings: Callable[[], Embeddings]
    document_key: str | None

    @property
    def id(self) -> UUID:
        return self._handle.id

    @property
    def name(self) -> str:
        return self._handle.name

    @property
    def metadata(self) -> dict[str, Any] | None:
        return dict(self._handle.metadata) or None

    @property
    def configuration(self) -> dict[str, Any]:
        hnsw = self._collections.search.hnsw
        return {
            "hnsw": {
                "space": self._handle.distance,
                "ef_construction": hnsw.ef_construction,
                "ef_search": hnsw.ef_search,
                "max_neighbors": hnsw.m,
            },
            "spann": None,
            "embedding_function": None,
        }

    def count(self) -> int:
        """Count the records, without those of documents in the trash."""
        with translate_collection_errors(self.name):
            return self._collections.count(self.id)

    # --- writing --------------------------------------------------------------------------------

    def add(
        self,
        ids: str | Sequence[str],
        embeddings: Any = None,
        metadatas: Any = None,
        documents: str | Sequence[str] | None = None,
    ) -> None:
        """Add records, all or none; records with existing ids are left unchanged."""
        with translate_collection_errors(self.name):
            records = self._records(ids, documents, metadatas, embeddings)
            self._collections.add_new(self.id, records)

    def upsert(
        self,
        ids: str | Sequence[str],
        embeddings: Any = None,
        metadatas: Any = None,
        documents: str | Sequence[str] | None = None,
    ) -> None:
        """Store records, all or none, replacing those with the same ids."""
        with translate_collection_errors(self.name):
            records = self._records(ids, documents, metadatas, embeddings)
            self._collections.upsert(self.id, records)

    def update(
        self,
        ids: str | Sequence[str],
        embeddings: Any = None,
        metadatas: Any = None,
        documents: str | Sequence[str] | None = None,
    ) -> None:
        """Change the given fields of records, all or none. Metadata is merged, a value of None
        removes its key; unknown ids are ignored."""
        named = checked_ids(ids)
        texts = None if documents is None else [clean_text(text) for text in one_or_many(documents)]
        listed = None if metadatas is None else one_or_many(metadatas)
        if embeddings is None and texts is not None:
            embeddings = self._embeddings().embed_documents(texts)
        vectors = None if embeddings is None else vectors_of(embeddings, len(named))
        same_length(len(named), documents=texts, metadatas=listed)
        changes = [
            RecordChange(
                one,
                content=texts[place] if texts else None,
                metadata=clean_metadata(listed[place]) if listed else None,
                vector=vectors[place] if vectors else None,
            )
            for place, one in enumerate(named)
        ]
        with translate_collection_errors(self.name):
            self._collections.update(self.id, changes, self._document_of)

    def delete(
        self,
        ids: str | Sequence[str] | None = None,
        where: Where | None = None,
        where_document: Where | None = None,
    ) -> dict[str, int]:
        """Delete the records that match every condition. Raises ValueError without a condition:
        `delete_collection` deletes everything."""
        if ids is None and not where and not where_document:
            raise ValueError("At least one of ids, where, or where_document must be provided.")
        with translate_collection_errors(self.name):
            wanted = record_filter(ids, where, where_document)
            return {"deleted": self._collections.delete(self.id, wanted)}

    def delete_document(self, document_id: UUID | str) -> bool:
        """Delete a document with its records, by its id or by its `document_key`."""
        with translate_collection_errors(self.name):
            if isinstance(document_id, str):
                named = clean_text(document_id)
                if self._collections.delete_document(self.id, named):
                    return True
                try:
                    document_id = UUID(named)
                except ValueError:
                    return False
            return self._collections.delete_document(self.id, document_id)

    # --- reading --------------------------------------------------------------------------------

    def get(
        self,
        ids: str | Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        offset: int | None = None,
        where_document: Where | None = None,
        include: Iterable[str] = ("metadatas", "documents"),
    ) -> dict[str, Any]:
        """Return records in insertion order as Chroma's `GetResult`: a list per field, None for
        fields not asked for and for empty metadata."""
        included = checked_include(include)
        page = Page(
            None if limit is None else checked_count(limit, "limit", min_value=0),
            checked_count(offset or 0, "offset", min_value=0),
            with_vectors="embeddings" in included,
        )
        with translate_collection_errors(self.name):
            wanted = record_filter(ids, where, where_document)
            records = self._collections.records(self.id, wanted, page)
        return as_result([records], included, nested=False)

    def peek(self, limit: int = 10) -> dict[str, Any]:
        """Return the first records, with their vectors."""
        return self.get(limit=limit, include=("metadatas", "documents", "embeddings"))

    def query(
        self,
        query_embeddings: Any = None,
        query_texts: str | Sequence[str] | None = None,
        n_results: int = 10,
        where: Where | None = None,
        where_document: Where | None = None,
        include: Iterable[str] = ("metadatas", "documents", "distances"),
    ) -> dict[str, Any]:
        """Return the nearest records for each vector or text as Chroma's `QueryResult`."""
        included = checked_include(include)
        if (query_embeddings is None) == (query_texts is None):
            raise ValueError("Provide either query_embeddings or query_texts.")
        if query_texts is not None:
            query_embeddings = [self.embed_query(text) for text in one_or_many(query_texts)]
        vectors = list(query_embeddings)
        if vectors and np.ndim(vectors[0]) == 0:
            vectors = [vectors]
        found = [
            self.near(
                vector, n_results, where, where_document, with_vectors="embeddings" in included
            )
            for vector in vectors
        ]
        return as_result(found, included, nested=True)

    def near(
        self,
        embedding: Any,
        k: int,
        where: Where | None = None,
        where_document: Where | None = None,
        *,
        with_vectors: bool = False,
    ) -> list[StoredRecord]:
        """Return the `k` nearest records that match the conditions, with distances."""
        k = checked_count(k, "the number of results", min_value=1)
        with translate_collection_errors(self.name):
            wanted = record_filter(None, where, where_document)
            page = Page(k, with_vectors=with_vectors)
            return self._collections.nearest(self.id, vector_of(embedding), wanted, page)

    def near_by_both(
        self, embedding: Any, words: str, k: int, where: Where | None, where_document: Where | None
    ) -> list[StoredRecord]:
        """Return the `k` best records by vector and words, with scores."""
        k = checked_count(k, "the number of results", min_value=1)
        with translate_collection_errors(self.name):
            wanted = record_filter(None, where, where_document)
            vector, text = vector_of(embedding), clean_text(words)
            return hybrid_search(self._collections, self.id, vector, text, wanted, limit=k)

    def embed_query(self, text: str) -> Vector:
        return vector_of(self._embeddings().embed_query(text))

    # --- inside ---------------------------------------------------------------------------------

    def _records(
        self, ids: Any, documents: Any, metadatas: Any, embeddings: Any
    ) -> list[NewRecord]:
        """Build records; those without a text get the empty text."""
        named = checked_ids(ids)
        if documents is None:
            if embeddings is None:
                raise ValueError("Provide documents or embeddings.")
            documents = [""] * len(named)
        texts = [clean_text("" if one is None else one) for one in one_or_many(documents)]
        listed = [None] * len(named) if metadatas is None else one_or_many(metadatas)
        same_length(len(named), documents=texts, metadatas=listed)
        if not named:
            return []
        cleaned = [clean_metadata(one) for one in listed]
        if embeddings is None:
            embeddings = self._embeddings().embed_documents(texts)
        vectors = vectors_of(embeddings, len(named))
        return [
            NewRecord(one, text, metadata, vector, self._document_of(metadata))
            for one, text, metadata, vector in zip(named, texts, cleaned, vectors, strict=True)
        ]

    def _document_of(self, metadata: Mapping[str, Any], /) -> str | None:
        return document_name(metadata, self.document_key)
