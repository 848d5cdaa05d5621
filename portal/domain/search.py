"""What a search asks for and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

MAX_QUERY_CHARACTERS = 4096
MAX_RESULTS = 100
# A result's confidence is judged against this many of the passages nearest to the question.
NEAREST_COMPARED = 31


class SearchMode(StrEnum):
    HYBRID = "hybrid"
    VECTOR = "vector"
    KEYWORD = "keyword"


class Fusion(StrEnum):
    WEIGHTED = "weighted"
    RRF = "rrf"


class Normalisation(StrEnum):
    """How the two scores of weighted fusion are brought to one scale: not at all, by the least
    and the greatest of the candidates, or by what unrelated text scores for the question."""

    RAW = "raw"
    MINMAX = "minmax"
    CALIBRATED = "calibrated"


class KeywordBackend(StrEnum):
    """What ranks words: BM25 by pg_textsearch, cover density by tsvector, or nothing."""

    PG_TEXTSEARCH = "pg_textsearch"
    TSVECTOR = "tsvector"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each leg counts in weighted fusion; they are used as shares of their sum."""

    vector: float = 0.7
    text: float = 0.3


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question to the store. None means: what `dynamic_config` says."""

    query: str
    top_n: int | None = None
    mode: SearchMode = SearchMode.HYBRID
    fusion: Fusion | None = None
    normalisation: Normalisation | None = None
    weights: Weights | None = None
    domain: str | None = None
    conversation_id: UUID | None = None
    threshold: float | None = None
    fuzzy: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Correction:
    """Another spelling of a question. `query` is the whole question as it would read, `terms` what
    the keyword leg then looks for, `replaced` the words that changed, old and new. It was
    searched for when `is_applied`; otherwise it is a suggestion ("did you mean")."""

    query: str
    terms: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]
    is_applied: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the text it belongs to."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One passage found. `score` orders, `confidence` in [0, 1] is the calibrated chance that
    the passage is relevant, `vector_score` is cosine similarity, `text_score` is BM25 in [0, 1].
    `highlights` are spans of `excerpt`. Ranks count from 1 in each leg, None where the leg did not
    find it; `matched_words` are words of the question as they stand in the passage;
    `duplicate_count` counts near-identical passages that this one stands for."""

    document_id: UUID
    chunk_id: UUID
    title: str
    excerpt: str
    highlights: tuple[Span, ...]
    page: int | None
    heading: str | None
    score: float
    vector_score: float | None
    text_score: float
    confidence: float
    low_confidence: bool
    source: SearchMode
    media_type: str
    char_start: int
    char_end: int
    vector_rank: int | None = None
    text_rank: int | None = None
    matched_words: tuple[str, ...] = ()
    duplicate_count: int = 0
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Hits in order, best first. `search_method` is what really ran; `degraded` says in codes
    what it did without (``embedder_unavailable``, ``keyword_unavailable``)."""

    query: str
    hits: tuple[SearchHit, ...]
    total_count: int
    search_method: SearchMode
    degraded: tuple[str, ...] = ()
    correction: Correction | None = None
    off_topic: bool = False
    explanation: dict[str, Any] | None = field(default=None)
