"""The port of `semantic_search`: its results, and the backend that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from portal.domain.embedding import Vector
from portal.domain.vector_collections import Page


@dataclass(frozen=True, slots=True)
class SemanticHit:
    """A chunk as a backend finds it. `similarity` is its cosine to the query, None from a keyword
    search."""

    id: str
    document_id: str
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class SemanticResult:
    """A chunk to show. `metadata` has its own and always `similarity`; in a hybrid search also
    `rrf_score`, `dense_rank` and `sparse_rank` (from 1, None where that leg did not find it)."""

    id: str
    document_id: str
    content: str
    similarity: float | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SemanticOutcome:
    """Results, best first. `method` is what ran: ``dense``, ``sparse``, ``hybrid``, or ``none`` for
    an empty query; `degraded` has codes for what was left out."""

    results: tuple[SemanticResult, ...]
    method: Literal["dense", "sparse", "hybrid", "none"]
    is_hybrid_enabled: bool
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HybridStatus:
    """Whether searches in a backend are hybrid, and the reason if that was requested but is not
    possible."""

    backend: str
    is_requested: bool
    is_enabled: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SemanticChunk:
    """A chunk that a program stores under its own id. A `content` of None is the empty text.
    `vector` is (dimensions,) float32; None to have the store embed the content, or where it was not
    loaded."""

    id: str
    content: str | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    vector: Vector | None = field(default=None, compare=False)


class QueryEmbedder(Protocol):
    """A source of query vectors."""

    def embed_query(self, text: str) -> Vector:
        """Return (dimensions,) float32, unit length. Raises EmbedderUnavailable and
        InvalidEmbedding."""


class SemanticBackend(Protocol):
    """A store of chunks. An error in a method counts as a failure of that leg."""

    @property
    def name(self) -> str: ...

    def why_no_sparse(self) -> str | None:
        """Return a code for why there is no keyword search; None if there is."""

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
    """A store of a program's chunks. Ids, texts and metadata have been cleaned, and every chunk to
    write has its vector."""

    def upsert(self, chunks: Sequence[SemanticChunk]) -> None:
        """Store chunks with distinct ids; each replaces the one with its id. Raises ValueError for
        chunks that cannot be stored."""

    def get(self, ids: Sequence[str] | None, page: Page) -> list[SemanticChunk]:
        """Return the chunks with these ids, or all, in order of first insertion."""

    def delete(self, ids: Sequence[str]) -> int:
        """Delete chunks; return how many existed."""

    def count(self) -> int: ...
