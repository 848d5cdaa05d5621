"""The portal's embedding models as LangChain's `Embeddings`."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.embeddings import Embeddings

from portal.domain.embedding import Embedder


class EmbedderEmbeddings(Embeddings):
    """One of the portal's models; `embedder` returns the one to use now. Vectors have unit length.
    Both methods raise EmbedderUnavailable."""

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._embedder().embed_chunks(texts)]

    def embed_query(self, text: str) -> list[float]:
        return [float(number) for number in self._embedder().embed_query(text)]
