"""`PostgresVectorStore`: LangChain's vector store on the portal's database, a replacement for
`langchain_chroma.Chroma`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from portal.domain.embedding import Vector
from portal.domain.vector_collections import StoredRecord
from portal.integrations.langchain.arguments import (
    DEFAULT_FETCH_K,
    DEFAULT_K,
    Query,
    Scored,
    Where,
    columns_of,
    k_in_search_kwargs,
    refuse_unknown,
)
from portal.integrations.langchain.base import CollectionStore

__all__ = ["PostgresVectorStore"]

Result = TypeVar("Result")


async def _run_on_thread(function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Call a function on another thread."""
    return await run_in_executor(None, function, *args, **kwargs)


def _on_thread(method: Callable[..., Result]) -> Callable[..., Coroutine[Any, Any, Result]]:
    """Return the asynchronous twin of a method, which calls it on another thread."""

    @wraps(method)
    async def twin(self: PostgresVectorStore, *args: Any, **kwargs: Any) -> Result:
        return await _run_on_thread(method, self, *args, **kwargs)

    return twin


def _embedding_first(method: Callable[..., Result]) -> Callable[..., Coroutine[Any, Any, Result]]:
    """Return the asynchronous twin of a search, which first awaits the embedding of the query."""

    @wraps(method)
    async def twin(self: PostgresVectorStore, query: Query, *args: Any, **kwargs: Any) -> Result:
        return await _run_on_thread(method, self, await self._avector(query), *args, **kwargs)

    return twin


class PostgresVectorStore(CollectionStore):
    """Texts with vectors and metadata in a collection of the portal's database.

    ::

        store = PostgresVectorStore("handbooks", OpenAIEmbeddings(), connection=DATABASE_URL)
        store.add_texts(["Annual leave is 24 days."], [{"source": "leave.md"}], ids=["leave-1"])
        store.similarity_search("How much vacation?", k=3, filter={"source": "leave.md"})

    Searches accept `filter`, conditions on metadata, and `where_document`, conditions on the text.
    Queries are texts or vectors.

    The asynchronous methods do not block the event loop: vectors come from the model's own
    asynchronous methods, and the database is queried on another thread.
    """

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        embedding: Embeddings | None = None,
        metadatas: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store, with `kwargs` as its arguments, and add these texts."""
        store = cls(embedding_function=embedding, **kwargs)
        store.add_texts(texts, metadatas, ids)
        return store

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        embedding: Embeddings | None = None,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store, with `kwargs` as its arguments, and add these documents."""
        store = cls(embedding_function=embedding, **kwargs)
        store.add_documents(documents, ids=ids)
        return store

    # --- searching ------------------------------------------------------------------------------

    def similarity_search(
        self,
        query: Query,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the `k` nearest documents."""
        found = self.similarity_search_with_score(query, k, filter, where_document, **kwargs)
        return [document for document, _distance in found]

    def similarity_search_with_score(
        self,
        query: Query,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> Scored:
        """Return the nearest documents with their distances: lower is nearer."""
        vector = self._vector(query)
        return self.similarity_search_by_vector_with_relevance_scores(
            vector, k, filter, where_document, **kwargs
        )

    def similarity_search_by_vector(
        self,
        embedding: Any,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the `k` documents nearest to a vector."""
        found = self.similarity_search_by_vector_with_relevance_scores(
            embedding, k, filter, where_document, **kwargs
        )
        return [document for document, _distance in found]

    def similarity_search_by_vector_with_relevance_scores(
        self,
        embedding: Any,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> Scored:
        """Return documents with distances, lower is nearer, as Chroma does under this name."""
        refuse_unknown(kwargs)
        records = self._collection.near(embedding, k, filter, where_document)
        return [(to_document(record), record.distance or 0.0) for record in records]

    def similarity_search_with_vectors(
        self,
        query: Query,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, Vector]]:
        """Return the nearest documents with their vectors."""
        refuse_unknown(kwargs)
        records = self._collection.near(
            self._vector(query), k, filter, where_document, with_vectors=True
        )
        return [
            (to_document(record), record.vector) for record in records if record.vector is not None
        ]

    def max_marginal_relevance_search(
        self,
        query: Query,
        k: int = DEFAULT_K,
        fetch_k: int = DEFAULT_FETCH_K,
        lambda_mult: float = 0.5,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest documents that differ from each other."""
        return self.max_marginal_relevance_search_by_vector(
            self._vector(query), k, fetch_k, lambda_mult, filter, where_document, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: Any,
        k: int = DEFAULT_K,
        fetch_k: int = DEFAULT_FETCH_K,
        lambda_mult: float = 0.5,
        filter: Where | None = None,
        where_document: Where | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the chosen documents by distance, as Chroma does."""
        refuse_unknown(kwargs)
        records = self._collection.near(
            embedding, fetch_k, filter, where_document, with_vectors=True
        )
        vectors: list[Any] = [record.vector for record in records]
        vector = np.array(embedding, dtype=np.float32)
        chosen = set(maximal_marginal_relevance(vector, vectors, lambda_mult=lambda_mult, k=k))
        return [to_document(one) for place, one in enumerate(records) if place in chosen]

    def hybrid_search(
        self,
        query_embedding: Query,
        query_text: str | None = None,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
    ) -> Scored:
        """Return the best documents by meaning and words with their scores: higher is better.

        Score = cosine × semantic_weight + BM25 / the best BM25 × bm25_weight, with the weights of
        `dynamic_config`. Without pg_textsearch it is the cosine alone, and that is logged. A text
        as `query_embedding` is embedded, and is also the default of `query_text`.
        """
        if query_text is None:
            if not isinstance(query_embedding, str):
                raise ValueError("hybrid_search needs the words of the query: query_text")
            query_text = query_embedding
        records = self._collection.near_by_both(
            self._vector(query_embedding), query_text, k, filter, where_document
        )
        return [(to_document(record), record.score or 0.0) for record in records]

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return a retriever; `k` may also be given outside of `search_kwargs`."""
        return super().as_retriever(**k_in_search_kwargs(kwargs))

    def _vector(self, query: Query) -> Any:
        return self._collection.embed_query(query) if isinstance(query, str) else query

    # --- asynchronous, with the model's own methods ---------------------------------------------

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str | None] | None = None,
        *,
        embeddings: Any = None,
        **kwargs: Any,
    ) -> list[str]:
        contents = list(texts)
        if embeddings is None and contents:
            embeddings = await self.embeddings.aembed_documents(contents)
        return await _run_on_thread(
            self.add_texts, contents, metadatas, ids, embeddings=embeddings, **kwargs
        )

    async def aadd_documents(
        self,
        documents: Sequence[Document],
        embeddings: Any = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        return await self.aadd_texts(*columns_of(documents, ids), embeddings=embeddings, **kwargs)

    async def aupdate_document(self, document_id: str, document: Document) -> None:
        await self.aupdate_documents([document_id], [document])

    async def aupdate_documents(self, ids: Sequence[str], documents: Sequence[Document]) -> None:
        texts = [document.page_content for document in documents]
        embeddings = await self.embeddings.aembed_documents(texts)
        await _run_on_thread(self.update_documents, ids, documents, embeddings)

    asimilarity_search = _embedding_first(similarity_search)
    asimilarity_search_with_score = _embedding_first(similarity_search_with_score)
    asimilarity_search_with_vectors = _embedding_first(similarity_search_with_vectors)
    amax_marginal_relevance_search = _embedding_first(max_marginal_relevance_search)

    async def ahybrid_search(
        self,
        query_embedding: Query,
        query_text: str | None = None,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
    ) -> Scored:
        if query_text is None and isinstance(query_embedding, str):
            query_text = query_embedding
        vector = await self._avector(query_embedding)
        return await _run_on_thread(
            self.hybrid_search, vector, query_text, k, filter, where_document
        )

    # --- asynchronous, on a thread --------------------------------------------------------------

    asimilarity_search_by_vector_with_relevance_scores = _on_thread(
        similarity_search_by_vector_with_relevance_scores
    )
    aget = _on_thread(CollectionStore.get)
    acount = _on_thread(CollectionStore.count)
    adelete_document = _on_thread(CollectionStore.delete_document)
    adelete_collection = _on_thread(CollectionStore.delete_collection)
    areset_collection = _on_thread(CollectionStore.reset_collection)

    async def _avector(self, query: Query) -> Any:
        if isinstance(query, str):
            return await self.embeddings.aembed_query(query)
        return query


def to_document(record: StoredRecord) -> Document:
    return Document(id=record.id, page_content=record.content, metadata=record.metadata)
