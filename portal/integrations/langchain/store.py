"""`PostgresVectorStore`: LangChain's vector store on the portal's database, a replacement for
`langchain_chroma.Chroma`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Self, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor

from portal.integrations.langchain.searching import DEFAULT_K, Query, Scored, Where
from portal.integrations.langchain.writing import WritingStore

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


class PostgresVectorStore(WritingStore):
    """Texts with vectors and metadata in a collection of the portal's database.

    ::

        store = PostgresVectorStore("handbooks", OpenAIEmbeddings(), connection=DATABASE_URL)
        store.add_texts(["Annual leave is 24 days."], [{"source": "leave.md"}], ids=["leave-1"])
        store.similarity_search("How much vacation?", k=3, filter={"source": "leave.md"})

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
        return await self.aadd_texts(
            [document.page_content for document in documents],
            [document.metadata for document in documents],
            [document.id for document in documents] if ids is None else ids,
            embeddings=embeddings,
            **kwargs,
        )

    async def aupdate_document(self, document_id: str, document: Document) -> None:
        await self.aupdate_documents([document_id], [document])

    async def aupdate_documents(self, ids: Sequence[str], documents: Sequence[Document]) -> None:
        texts = [document.page_content for document in documents]
        embeddings = await self.embeddings.aembed_documents(texts)
        await _run_on_thread(self.update_documents, ids, documents, embeddings)

    asimilarity_search = _embedding_first(WritingStore.similarity_search)
    asimilarity_search_with_score = _embedding_first(WritingStore.similarity_search_with_score)
    asimilarity_search_with_vectors = _embedding_first(WritingStore.similarity_search_with_vectors)
    amax_marginal_relevance_search = _embedding_first(WritingStore.max_marginal_relevance_search)

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
        WritingStore.similarity_search_by_vector_with_relevance_scores
    )
    aget = _on_thread(WritingStore.get)
    acount = _on_thread(WritingStore.count)
    adelete_document = _on_thread(WritingStore.delete_document)
    adelete_collection = _on_thread(WritingStore.delete_collection)
    areset_collection = _on_thread(WritingStore.reset_collection)

    async def _avector(self, query: Query) -> Any:
        if isinstance(query, str):
            return await self.embeddings.aembed_query(query)
        return query
