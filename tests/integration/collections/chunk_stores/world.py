"""The same chunks in a store of either backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from portal.domain.embedding import Vector
from portal.domain.search.semantic import SemanticChunk
from portal.integrations.chunk_store import SemanticChunkStore

QUESTION = "annual leave"
PLAIN, MARKDOWN = "text/plain", "text/markdown"


@dataclass
class PlannedEmbedder:
    """Embed queries along the first axis and chunks along the last, or raise."""

    error: Exception | None = None
    name: str = "planned"
    dimensions: int = 3
    embedded: list[str] = field(default_factory=list)

    def embed_query(self, text: str) -> Vector:
        if self.error is not None:
            raise self.error
        return np.array([1, 0, 0], dtype=np.float32)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        if self.error is not None:
            raise self.error
        self.embedded += texts
        return np.tile(np.array([0, 0, 1], dtype=np.float32), (len(texts), 1))


def chunk(
    key: str, text: str | None, vector: Sequence[float] | None = None, **metadata: Any
) -> SemanticChunk:
    at = None if vector is None else np.array(vector, dtype=np.float32)
    return SemanticChunk(key, text, metadata, at)


# Similarities: leave 1, handbook 0.8, chinese 0.6, code 0.28, report 0, office -1. Keyword hits:
# leave, report, code.
CHUNKS = [
    chunk("leave", "Employees take fifteen days of annual leave.", (2, 0, 0), content_type=PLAIN),
    chunk("handbook", "Employees get a badge and a key.", (0.8, 0.6, 0), content_type=MARKDOWN),
    chunk("report", "The annual report of the meeting in spring.", (0, 1, 0), content_type=PLAIN),
    chunk("office", "The office closes at six.", (-1, 0, 0), content_type=PLAIN),
    chunk(
        "code",
        "The code PO-4711 stands for leave that is not paid, and for a sabbatical.",
        (0.28, 0, 0.96),
        content_type=MARKDOWN,
        document_id="codes",
    ),
    chunk("chinese", "员工每年有十五天带薪年假。", (0.6, 0.8, 0), content_type=PLAIN),
]
COSINES = {
    "leave": 1.0,
    "handbook": 0.8,
    "chinese": 0.6,
    "code": 0.28,
    "report": 0.0,
    "office": -1.0,
}


@dataclass
class World:
    """A backend and its stores. `restart` discards everything in memory; `drop` deletes a
    collection without the stores' knowledge."""

    backend: str
    _open: Callable[..., SemanticChunkStore]
    restart: Callable[[], None]
    drop: Callable[[str], None]
    embedder: PlannedEmbedder = field(default_factory=PlannedEmbedder)

    def open(
        self, collection: str = "content_chunks", *, hybrid: bool | None = True
    ) -> SemanticChunkStore:
        return self._open(collection, embedder=self.embedder, hybrid=hybrid)

    def filled(self, *, hybrid: bool | None = True) -> SemanticChunkStore:
        store = self.open(hybrid=hybrid)
        store.upsert(CHUNKS)
        return store


def ids(results: Sequence[Any]) -> list[str]:
    return [result.id for result in results]


def similarities(results: Sequence[Any]) -> Mapping[str, float]:
    return {result.id: round(result.similarity, 5) for result in results}
