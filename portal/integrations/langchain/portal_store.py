"""The portal's own documents as a read-only vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self
from uuid import UUID

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import SearchMode, Unit
from portal.domain.vector_collections import StoredRecord
from portal.integrations.connection import Connection
from portal.integrations.langchain.arguments import (
    DEFAULT_FETCH_K,
    DEFAULT_K,
    Query,
    Scored,
    Where,
    k_in_search_kwargs,
    refuse_unknown,
)
from portal.integrations.langchain.embeddings import EmbedderEmbeddings
from portal.integrations.langchain.portal_reading import (
    as_uuid,
    open_reader,
    search_request,
    to_documents,
    translate_reader_errors,
)
from portal.integrations.langchain.results import as_result, checked_include
from portal.integrations.values import checked_count, record_filter
from portal.services import Services
from portal.services.collections.portal_reader import ReadChunk
from portal.store.documents.selection import PORTAL_COLLECTION

READ_ONLY = (
    "the collection “portal” is read-only here: upload documents on the portal's pages, by "
    "`portal import` or by POST /api/knowledge/documents"
)


class PortalVectorStore(VectorStore):
    """The collection `portal` as a read-only vector store; a record is a chunk, with its id.

    `filter` accepts conditions on the metadata of chunks (`source_file`, `page_number`, and values
    added by programs), and the fields `domain` and `content_type` of their documents as plain
    values.
    """

    def __init__(
        self,
        user: str | User,
        conversation: UUID | str | None = None,
        *,
        scope: AskScope | None = None,
        connection: Connection | Services | None = None,
    ) -> None:
        """Open the store; a `scope` limits its searches. Raises ValueError as `PortalRetriever`
        does, and ServerSetup."""
        self._scope = scope
        self._reader = open_reader(user, conversation, connection)

    @property
    def name(self) -> str:
        return PORTAL_COLLECTION

    @property
    def embeddings(self) -> Embeddings:
        """Return the portal's active model."""
        return EmbedderEmbeddings(self._reader.embedder)

    # --- searching ------------------------------------------------------------------------------

    def similarity_search(
        self, query: Query, k: int = DEFAULT_K, filter: Where | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the `k` chunks with the highest cosine to a query or a vector."""
        return self._documents(self._nearest(query, k, filter, **kwargs))

    def similarity_search_with_score(
        self, query: Query, k: int = DEFAULT_K, filter: Where | None = None, **kwargs: Any
    ) -> Scored:
        """Return the nearest chunks with 1 - cosine: lower is nearer."""
        found = self._nearest(query, k, filter, **kwargs)
        distances = [1 - (one.hit.vector_score or 0.0) for one in found if one.hit]
        return list(zip(self._documents(found), distances, strict=True))

    def similarity_search_by_vector(
        self, embedding: Any, k: int = DEFAULT_K, filter: Where | None = None, **kwargs: Any
    ) -> list[Document]:
        return self.similarity_search(embedding, k, filter, **kwargs)

    def max_marginal_relevance_search(
        self,
        query: Query,
        k: int = DEFAULT_K,
        fetch_k: int = DEFAULT_FETCH_K,
        lambda_mult: float = 0.5,
        filter: Where | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest chunks that differ from each other, nearest first."""
        vector = self.embeddings.embed_query(query) if isinstance(query, str) else query
        found = self._nearest(vector, fetch_k, filter, **kwargs)
        vectors = self._reader.vectors(found)
        found = [one for one in found if one.chunk.id in vectors]
        chosen = maximal_marginal_relevance(
            np.asarray(vector, dtype=np.float32),
            [vectors[one.chunk.id].tolist() for one in found],
            lambda_mult=lambda_mult,
            k=k,
        )
        return self._documents([found[place] for place in sorted(chosen)])

    def max_marginal_relevance_search_by_vector(
        self, embedding: Any, *args: Any, **kwargs: Any
    ) -> list[Document]:
        return self.max_marginal_relevance_search(embedding, *args, **kwargs)

    def hybrid_search(self, query: str, k: int = DEFAULT_K, filter: Where | None = None) -> Scored:
        """Return the best chunks by meaning and words with their scores: higher is better."""
        found = self._search(query, k, filter, one_hit_per=Unit.CHUNK)
        scores = [one.hit.score for one in found if one.hit]
        return list(zip(self._documents(found), scores, strict=True))

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return a retriever; `k` may also be given outside of `search_kwargs`."""
        return super().as_retriever(**k_in_search_kwargs(kwargs))

    # --- reading --------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return chunks in the given order, without those that the user may not read."""
        wanted = [key for chunk_id in ids if (key := as_uuid(chunk_id)) is not None]
        with translate_reader_errors(self._reader):
            found = self._reader.chunks(wanted)
        return self._documents([found[key] for key in wanted if key in found])

    def get(
        self,
        ids: str | Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        offset: int | None = None,
        include: Iterable[str] = ("metadatas", "documents"),
    ) -> dict[str, Any]:
        """Return chunks as `Collection.get` of Chroma does, in insertion order, without vectors."""
        included = checked_include(include)
        if ids is not None:
            documents = self.get_by_ids([ids] if isinstance(ids, str) else ids)
        else:
            with translate_reader_errors(self._reader):
                metadata = record_filter(where=where).metadata
                listed = self._reader.list_chunks(
                    metadata,
                    limit=None if limit is None else checked_count(limit, "limit", min_value=0),
                    offset=checked_count(offset or 0, "offset", min_value=0),
                )
            documents = self._documents(listed)
        records = [
            StoredRecord(document.id or "", document.page_content, document.metadata)
            for document in documents
        ]
        return as_result([records], included, nested=False)

    def count(self) -> int:
        """Count the chunks that the user may read."""
        with translate_reader_errors(self._reader):
            return self._reader.count()

    # --- writing is refused ---------------------------------------------------------------------

    def add_texts(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(READ_ONLY)

    add_documents = add = upsert = update_document = update_documents = add_texts

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(READ_ONLY)

    delete_document = delete_collection = reset_collection = delete

    @classmethod
    def from_texts(cls, *_args: Any, **_kwargs: Any) -> Self:
        raise NotImplementedError(READ_ONLY)

    # --- inside ---------------------------------------------------------------------------------

    def _nearest(self, query: Query, k: int, where: Where | None, **kwargs: Any) -> list[ReadChunk]:
        refuse_unknown(kwargs)
        return self._search(
            query, k, where, mode=SearchMode.VECTOR, one_hit_per=Unit.CHUNK, as_shown=True
        )

    def _search(self, query: Query, k: int, where: Where | None, **options: Any) -> list[ReadChunk]:
        with translate_reader_errors(self._reader):
            request = replace(search_request(query, k, where), scope=self._scope, **options)
            return self._reader.search(request)

    def _documents(self, found: Sequence[ReadChunk]) -> list[Document]:
        return to_documents(self._reader, found)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self._cosine_relevance_score_fn
