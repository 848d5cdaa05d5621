"""Searches of chunks by programs: what they ask for, what they find."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.chunks import JobChunk
from portal.domain.metadata_filter import MetadataFilter
from portal.domain.search import NO_PARTS, Correction, Fusion, Parts, UsedParameters

MAX_QUERIES = 20


class FusionMethod(StrEnum):
    """How the two legs of a search became one, or which of them was left alone."""

    WEIGHTED_SUM = "weighted_sum"
    RRF = "rrf"
    TEXT_ONLY = "text_only"
    VECTOR_ONLY = "vector_only"


@dataclass(frozen=True, slots=True)
class Within:
    """What a search is kept to: one job, what the metadata is to be, a conversation's switches."""

    job_id: UUID | None = None
    metadata: MetadataFilter | None = None
    conversation_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class SemanticQuery:
    """A query by meaning: text, or a vector of the caller's own. Nothing below a cosine of
    `threshold` is found; 0 sets no bound. A `top_k` of None is the configured one."""

    text: str = ""
    vector: tuple[float, ...] | None = None
    top_k: int | None = None
    threshold: float = 0.0
    within: Within = Within()


@dataclass(frozen=True, slots=True)
class HybridQuery:
    """A query by meaning and by words. `threshold` is the cosine from which a chunk counts as
    found by meaning; what the words find stays. What is None is as configured."""

    text: str
    top_k: int | None = None
    vector_weight: float | None = None
    text_weight: float | None = None
    fusion: Fusion | None = None
    rrf_k: int | None = None
    threshold: float = 0.0
    within: Within = Within()


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk with its scores: cosine (0 without a vector), BM25 as a share of the best, and what
    orders the results, the sum of `parts`. `highlighted` is its content as HTML, words of the query
    marked; of a fuzzy search, `similarity` says how like the words typed are to those of the chunk,
    0 to 1."""

    chunk: JobChunk
    cosine: float
    text_score: float
    combined: float
    vector_rank: int | None
    text_rank: int | None
    highlighted: str | None = None
    similarity: float | None = None
    parts: Parts = NO_PARTS
    bm25: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundChunks:
    """Chunks in order, best first, in codes what the search did without, and what it went by."""

    items: tuple[FoundChunk, ...]
    degraded: tuple[str, ...] = ()
    correction: Correction | None = None
    method: FusionMethod | None = None
    used: UsedParameters | None = None
