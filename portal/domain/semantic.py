"""The port of `semantic_search`: its results, and what it needs of a backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from portal.domain.embedding import Vector


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """A chunk as a backend finds it. `similarity` is its cosine to the question, None where a
    search by words did not look."""

    id: str
    document_id: str
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class SemanticResult:
    """A chunk to show. `metadata` holds its own and, always, `similarity`; in a hybrid search
    `rrf_score`, `dense_rank` and `sparse_rank` too (from 1, None where that leg did not find
    it)."""

    id: str
    document_id: str
    content: str
    similarity: float | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SemanticOutcome:
    """Results, best first. `method` is what ran: ``dense``, ``sparse``, ``hybrid``, or ``none`` for
    an empty question; `degraded` says in codes what was done without."""

    results: tuple[SemanticResult, ...]
    method: Literal["dense", "sparse", "hybrid", "none"]
    is_hybrid_enabled: bool
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HybridStatus:
    """Whether searches in a backend are hybrid, and the reason when they were to be and are not."""

    backend: str
    is_requested: bool
    is_enabled: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SemanticChunk:
    """A chunk as a program keeps it under an id of its own. A `content` of None counts as the
    empty text. `vector` is (dimensions,) float32; None where the store is to embed the content,
    or where it was not asked for."""

    id: str
    content: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    vector: Vector | None = field(default=None, compare=False)


class QueryEmbedder(Protocol):
    """What turns a question into a vector."""

    def embed_query(self, text: str) -> Vector:
        """(dimensions,) float32, unit length. Raises EmbedderUnavailable, InvalidEmbedding."""


class SemanticBackend(Protocol):
    """A store of chunks. An error in a method counts as that leg's failure."""

    @property
    def name(self) -> str: ...

    def why_no_sparse(self) -> str | None:
        """Return why there is no keyword search, in a word for programs; None where there is."""

    def dense(
        self, query_vector: Vector, limit: int, content_type: str | None
    ) -> Sequence[SemanticHit]:
        """Return the chunks nearest to a vector, nearest first, each with its similarity."""

    def sparse(
        self, query_text: str, limit: int, content_type: str | None
    ) -> Sequence[SemanticHit]:
        """Return the chunks that BM25 ranks first, best first."""

    def similarities(self, query_vector: Vector, ids: Sequence[str]) -> Mapping[str, float]:
        """Return the cosines of chunks to a vector, for those that have one."""


class ChunkBackend(SemanticBackend, Protocol):
    """Where a program's chunks are kept. Ids, texts and metadata come cleaned, and each chunk
    that is to be written with its vector."""

    def upsert(self, chunks: Sequence[SemanticChunk]) -> None:
        """Keep chunks of distinct ids, whole, in the place of those with the same ids. Raises
        ValueError for what cannot be kept."""

    def get(self, ids: Sequence[str] | None, page: ChunkSlice) -> list[SemanticChunk]:
        """Return the chunks with these ids, or all, in the order in which they were first kept."""

    def delete(self, ids: Sequence[str]) -> int:
        """Erase chunks; how many there were."""

    def count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ChunkSlice:
    """Which of the chunks, in the order in which they were first kept."""

    limit: int | None = None
    offset: int = 0
    with_vectors: bool = field(default=False, kw_only=True)


class ChunkStore(Protocol):
    """Chunks of a program that are searched by meaning, or by meaning and words: over any store."""

    @property
    def status(self) -> HybridStatus: ...

    def is_hybrid_search_enabled(self) -> bool: ...

    def semantic_search(
        self,
        query: str,
        limit: int = ...,
        threshold: float | None = None,
        content_type: str | None = None,
    ) -> list[SemanticResult]:
        """Return the best chunks: at most `limit` (less than 1 counts as 5), of a cosine of
        `threshold` or more, whose metadata has this `content_type`; none for an empty query."""

    def upsert(self, chunks: Iterable[SemanticChunk]) -> None: ...

    def get(
        self,
        ids: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[SemanticChunk]: ...

    def delete(self, ids: Sequence[str]) -> int: ...

    def count(self) -> int: ...
