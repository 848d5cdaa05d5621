"""`PostgresVectorStore`: LangChain's vector store on the portal's database, in the place of
`langchain_chroma.Chroma`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables.config import run_in_executor

from portal.domain.embedding import Vector
from portal.integrations.langchain.searching import (
    DEFAULT_FETCH_K,
    DEFAULT_K,
    Question,
    Scored,
    Where,
)
from portal.integrations.langchain.writing import WritingStore

__all__ = ["PostgresVectorStore"]

Result = TypeVar("Result")


class PostgresVectorStore(WritingStore):
    """Texts with vectors and metadata in a collection of the portal's database.

    ::

        store = PostgresVectorStore("handbooks", OpenAIEmbeddings(), connection=DATABASE_URL)
        store.add_texts(["Annual leave is 24 days."], [{"source": "leave.md"}], ids=["leave-1"])
        store.similarity_search("How much vacation?", k=3, filter={"source": "leave.md"})

    What the asynchronous methods do does not hold up the loop: vectors come from the model's own
    asynchronous methods, and the database is asked on another thread.
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

    # --- asynchronous: what embeds --------------------------------------------------------------

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
        return await _apart(
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
        await _apart(self.update_documents, ids, documents, embeddings)

    async def asimilarity_search(
        self, query: Question, k: int = DEFAULT_K, *args: Any, **kwargs: Any
    ) -> list[Document]:
        vector = await self._avector(query)
        return await _apart(self.similarity_search, vector, k, *args, **kwargs)

    async def asimilarity_search_with_score(
        self, query: Question, k: int = DEFAULT_K, *args: Any, **kwargs: Any
    ) -> Scored:
        vector = await self._avector(query)
        return await _apart(self.similarity_search_with_score, vector, k, *args, **kwargs)

    async def asimilarity_search_with_vectors(
        self, query: Question, k: int = DEFAULT_K, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, Vector]]:
        vector = await self._avector(query)
        return await _apart(self.similarity_search_with_vectors, vector, k, *args, **kwargs)

    async def asimilarity_search_by_vector_with_relevance_scores(
        self, embedding: Any, k: int = DEFAULT_K, *args: Any, **kwargs: Any
    ) -> Scored:
        search = self.similarity_search_by_vector_with_relevance_scores
        return await _apart(search, embedding, k, *args, **kwargs)

    async def amax_marginal_relevance_search(
        self,
        query: Question,
        k: int = DEFAULT_K,
        fetch_k: int = DEFAULT_FETCH_K,
        lambda_mult: float = 0.5,
        **kwargs: Any,
    ) -> list[Document]:
        vector = await self._avector(query)
        return await _apart(
            self.max_marginal_relevance_search, vector, k, fetch_k, lambda_mult, **kwargs
        )

    async def ahybrid_search(
        self,
        query_embedding: Question,
        query_text: str | None = None,
        k: int = DEFAULT_K,
        filter: Where | None = None,
        where_document: Where | None = None,
    ) -> Scored:
        if query_text is None and isinstance(query_embedding, str):
            query_text = query_embedding
        vector = await self._avector(query_embedding)
        return await _apart(self.hybrid_search, vector, query_text, k, filter, where_document)

    # --- asynchronous: what does not ------------------------------------------------------------

    async def aget(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return await _apart(self.get, *args, **kwargs)

    async def acount(self) -> int:
        return await _apart(self.count)

    async def adelete_document(self, document_id: UUID | str) -> bool:
        return await _apart(self.delete_document, document_id)

    async def adelete_collection(self) -> None:
        await _apart(self.delete_collection)

    async def areset_collection(self) -> None:
        await _apart(self.reset_collection)

    async def _avector(self, question: Question) -> Any:
        if isinstance(question, str):
            return await self.embeddings.aembed_query(question)
        return question


async def _apart(function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Call on another thread."""
    return await run_in_executor(None, function, *args, **kwargs)
