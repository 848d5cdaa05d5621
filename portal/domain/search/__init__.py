"""Search requests and results."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from portal.domain.documents.selection import AskScope
from portal.domain.search.metadata_filter import MetadataFilter

MAX_QUERY_CHARACTERS = 4096
MAX_RESULTS = 100
# A result's confidence is judged against this many of the chunks nearest to the query.
NEAREST_COMPARED = 31


@dataclass(frozen=True, slots=True)
class Facets:
    """The facets that limit a search: folder (and below), tag, type, owner, domain, and age in
    days."""

    folder_id: UUID | None = None
    tag: str | None = None
    media_type: str | None = None
    owner_id: UUID | None = None
    domain: str | None = None
    days: int | None = None


@dataclass(frozen=True, slots=True)
class FacetCount:
    """The number of documents with a value of a facet; `label` names values that are ids."""

    facet: str
    value: str
    label: str
    count: int


class SearchMode(StrEnum):
    HYBRID = "hybrid"
    VECTOR = "vector"
    KEYWORD = "keyword"


class Fusion(StrEnum):
    WEIGHTED = "weighted"
    RRF = "rrf"


class Normalisation(StrEnum):
    """How weighted fusion puts both scores on one scale: not at all, by the range of the
    candidates, or by the scores of unrelated text."""

    RAW = "raw"
    MINMAX = "minmax"
    CALIBRATED = "calibrated"


class Unit(StrEnum):
    """The unit that has at most one hit, its best chunk: near-identical text, a document, or a
    single chunk."""

    TEXT = "text"
    DOCUMENT = "document"
    CHUNK = "chunk"


class KeywordBackend(StrEnum):
    """The ranking of keywords: BM25 with pg_textsearch, cover density with tsvector, or none."""

    PG_TEXTSEARCH = "pg_textsearch"
    TSVECTOR = "tsvector"
    OFF = "off"


NO_TEXTSEARCH = "no pg_textsearch"
TEXTSEARCH_REMEDY = (
    "install pg_textsearch 1.4.0 or newer, add it to shared_preload_libraries, restart the server "
    "and run CREATE EXTENSION pg_textsearch; or set PORTAL_SEARCH__KEYWORD_BACKEND=tsvector"
)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of both legs in weighted fusion."""

    vector: float = 0.7
    text: float = 0.3

    def as_shares(self) -> Weights:
        """Return the same weights with a sum of 1; the defaults if both are 0."""
        total = self.vector + self.text
        vector = self.vector / total if total else 0.7
        return Weights(vector, 1 - vector)


class Parts(NamedTuple):
    """The parts of a score: one for each leg, one for a preferred domain, and one for words that
    are adjacent or, in another language, translated."""

    vector: float = 0.0
    text: float = 0.0
    domain: float = 0.0
    proximity: float = 0.0

    @property
    def score(self) -> float:
        return self.vector + self.text + self.domain + self.proximity


NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query to the store. Values of None are as in `dynamic_config`.

    `threshold` cuts the score in keyword mode, the confidence otherwise; keyword hits fill up if
    too few chunks reach it. Without `operators` the query is plain text. `content_type` keeps
    chunks of that type only, by the document's file or by their own metadata; `language` ("zh",
    "en" or "other") those in that language. `as_shown` orders by the weighted sum of the two scores
    that a hit shows, cosine and BM25 as a share of the best, without correction, preferred domain
    or re-ranking.

    `query_vector`, of any length, replaces the query's own vector. `min_similarity` is the minimum
    cosine of hits of the vector leg; keyword hits stay. `job_id` keeps the chunks of that job only,
    `without_job_id` all others, `without_chunk_id` all but that one, `metadata` those that match.
    `scope` narrows what is switched on. `leg_limit` is the number of chunks from each leg, if it
    differs from `top_n`; `default_top_n` replaces `top_n` where neither the request nor an
    administrator sets it.
    """

    query: str
    top_n: int | None = None
    mode: SearchMode = SearchMode.HYBRID
    fusion: Fusion | None = None
    normalisation: Normalisation | None = None
    weights: Weights | None = None
    domain: str | None = None
    conversation_id: UUID | None = None
    scope: AskScope | None = None
    threshold: float | None = None
    fuzzy: bool = False
    explain: bool = False
    operators: bool = True
    content_type: str | None = None
    language: str | None = None
    one_hit_per: Unit = Unit.TEXT
    as_shown: bool = False
    query_vector: tuple[float, ...] | None = None
    min_similarity: float | None = None
    rrf_k: int | None = None
    job_id: UUID | None = None
    without_job_id: UUID | None = None
    without_chunk_id: UUID | None = None
    metadata: MetadataFilter | None = None
    leg_limit: int | None = None
    default_top_n: int | None = None
    facets: Facets | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """Another spelling of a query: `query` is the whole corrected query, `terms` what the keyword
    leg then searches for, `replaced` the changed words, old and new. `is_applied` if it was
    searched for, otherwise it is a suggestion ("did you mean")."""

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
    """A chunk found. `score` orders hits and is the sum of `parts`; `confidence` in [0, 1] is the
    calibrated probability that the chunk is relevant, `vector_score` its cosine, and `text_score`
    its `bm25` as a share of the best. `highlights` are spans of `excerpt`. Ranks count from 1 in
    each leg, None if the leg did not find it; `page_label` is the label printed on the page, if
    that is not its number; `matched_words` are words of the query as written in the chunk;
    `context` has the caption and the header of the table whose rows the chunk begins with;
    `has_header` if the excerpt begins with the header of a table; `duplicate_count` counts
    near-identical chunks that it stands for."""

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
    char_start: int | None
    char_end: int | None
    vector_rank: int | None = None
    text_rank: int | None = None
    matched_words: tuple[str, ...] = ()
    duplicate_count: int = 0
    rerank_score: float | None = None
    page_label: str | None = None
    context: str | None = None
    has_header: bool = False
    parts: Parts = NO_PARTS
    bm25: float = 0.0


@dataclass(frozen=True, slots=True)
class UsedParameters:
    """The parameters of a search, from the request or the configuration."""

    top_n: int
    fusion: Fusion
    normalisation: Normalisation
    weights: Weights
    rrf_k: int


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Hits, best first. `search_method` is the mode that ran; `degraded` has codes for what was
    left out (``embedder_unavailable``, ``keyword_incomplete``). The counts are of all hits of each
    leg. `used` is None if nothing was searched."""

    query: str
    hits: tuple[SearchHit, ...]
    total_count: int
    search_method: SearchMode
    degraded: tuple[str, ...] = ()
    correction: Correction | None = None
    off_topic: bool = False
    vector_count: int = 0
    text_count: int = 0
    explanation: dict[str, Any] | None = field(default=None)
    used: UsedParameters | None = None
