"""The portal's own embedding model, as LangChain asks for one."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from portal.domain.embedding import Embedder
from portal.embeddings import create_embedder
from portal.settings import EmbeddingSettings


class PortalEmbeddings(Embeddings):
    """The model that the portal's settings name: vectors of unit length."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        self._embedder: Embedder = create_embedder(settings)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of passages. Raises EmbedderUnavailable."""
        return [vector.tolist() for vector in self._embedder.embed_chunks(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question. Raises EmbedderUnavailable."""
        return [float(number) for number in self._embedder.embed_query(text)]
