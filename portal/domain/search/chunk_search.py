"""Searches of chunks through the API: requests and results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

from portal.domain.documents.chunks import JobChunk
from portal.domain.documents.selection import AskScope
from portal.domain.search import NO_PARTS, Correction, Fusion, Parts, UsedParameters
from portal.domain.search.metadata_filter import MetadataFilter

MAX_QUERIES = 20


class FusionMethod(StrEnum):
    """The fusion of both legs, or the only leg that ran."""

    WEIGHTED_SUM = "weighted_sum"
    RRF = "rrf"
    TEXT_ONLY = "text_only"
    VECTOR_ONLY = "vector_only"


FusionName = Literal["weighted_sum", "rrf"]
# The settings and the API of chunks call the weighted fusion `weighted_sum`.
FUSIONS: dict[FusionName, Fusion] = {"weighted_sum": Fusion.WEIGHTED, "rrf": Fusion.RRF}
FUSION_NAMES = {fusion: name for name, fusion in FUSIONS.items()}


@dataclass(frozen=True, slots=True)
class Within:
    """The limits of a search: one job, a metadata filter, the switches of a conversation, and a
    scope."""

    job_id: UUID | None = None
    metadata: MetadataFilter | None = None
    conversation_id: UUID | None = None
    scope: AskScope | None = None


@dataclass(frozen=True, slots=True)
class SemanticQuery:
    """A query by meaning: text, or a vector supplied by the client. `threshold` is the minimum
    cosine; 0 sets none. A `top_k` of None is the configured one."""

    text: str = ""
    vector: tuple[float, ...] | None = None
    top_k: int | None = None
    threshold: float = 0.0
    within: Within = Within()


@dataclass(frozen=True, slots=True)
class HybridQuery:
    """A query by meaning and by words. `threshold` is the minimum cosine of hits of the vector leg;
    keyword hits stay. Values of None are as configured."""

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
    """A chunk with its scores: cosine (0 without a vector), BM25 as a share of the best, and the
    combined score, which is the sum of `parts`. `highlighted` is its content as HTML with the
    query's words marked. In a fuzzy search `similarity` is that of the typed words to words of the
    chunk, 0 to 1."""

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
    """Chunks, best first; `degraded` has codes for what was left out of the search, `used` its
    parameters."""

    items: tuple[FoundChunk, ...]
    degraded: tuple[str, ...] = ()
    correction: Correction | None = None
    method: FusionMethod | None = None
    used: UsedParameters | None = None
