"""Search a LangChain store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from portal.domain.embedding import Vector
from portal.domain.vector_collections import StoredRecord
from portal.integrations.langchain.base import CollectionStore

DEFAULT_K = 4
DEFAULT_FETCH_K = 20

Query = str | Sequence[float] | Vector
Where = Mapping[str, Any]
Scored = list[tuple[Document, float]]


class SearchingStore(CollectionStore):
    """A store with its searches. Each accepts `filter`, conditions on metadata, and
    `where_document`, conditions on the text. Queries are texts or vectors."""

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


def to_document(record: StoredRecord) -> Document:
    return Document(id=record.id, page_content=record.content, metadata=record.metadata)


def refuse_unknown(kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError for any argument: a mistyped `filter` must not silently search everything."""
    if kwargs:
        raise TypeError(f"unexpected keyword arguments: {', '.join(sorted(kwargs))}")


def k_in_search_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Move a retriever's `k` to `search_kwargs`, where LangChain reads it; a `k` that is there
    already takes precedence."""
    if "k" not in kwargs:
        return kwargs
    searching = {"k": kwargs["k"]} | (kwargs.get("search_kwargs") or {})
    return {name: value for name, value in kwargs.items() if name != "k"} | {
        "search_kwargs": searching
    }
