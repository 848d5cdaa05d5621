"""What a search asks for and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from portal.domain.metadata_filter import MetadataFilter

MAX_QUERY_CHARACTERS = 4096
MAX_RESULTS = 100
# A result's confidence is judged against this many of the chunks nearest to the question.
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


class Unit(StrEnum):
    """What a search shows once, by its best chunk: chunks that say nearly the same, a document,
    or nothing: every chunk."""

    TEXT = "text"
    DOCUMENT = "document"
    PASSAGE = "passage"


class KeywordBackend(StrEnum):
    """What ranks words: BM25 by pg_textsearch, cover density by tsvector, or nothing."""

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
    """How much each leg counts in weighted fusion."""

    vector: float = 0.7
    text: float = 0.3

    def as_shares(self) -> Weights:
        """Return the same weights with a sum of 1; the default ones where both are 0."""
        total = self.vector + self.text
        vector = self.vector / total if total else 0.7
        return Weights(vector, 1 - vector)


class Parts(NamedTuple):
    """What was added up to a score: a part of each leg, and what a preferred domain added."""

    vector: float = 0.0
    text: float = 0.0
    domain: float = 0.0

    @property
    def score(self) -> float:
        return self.vector + self.text + self.domain


NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query to the store. None means: what `dynamic_config` says.

    `threshold` cuts the score in keyword mode, the confidence otherwise; where too few chunks reach
    it, those that words find fill up. Without `operators` the query is text and nothing else.
    `content_type` keeps chunks of that type alone, of the document's file or by their own metadata.
    `as_shown` orders by the weighted sum of just the two scores that a hit shows, cosine and BM25
    as a share of the best, with the weights as they are: no correction, no preferred domain, no
    second model.

    `query_vector` is looked for instead of the query's own vector, which then is not asked for;
    its length does not count. `min_similarity` is the cosine from which a chunk counts as found
    by meaning; one that words found stays. `job_id` keeps the chunks of that job alone,
    `without_job_id` all others, `without_chunk_id` all but that one, `metadata` those that fulfil
    it. `leg_limit` is how many chunks each leg offers, where that is to be told apart from how many
    are wanted; `default_top_n` is how many are, where neither the request nor an administrator
    says.
    """

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
    operators: bool = True
    content_type: str | None = None
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
    """One chunk found. `score` orders and is the sum of `parts`; `confidence` in [0, 1] is the
    calibrated chance that the chunk is relevant, `vector_score` is its cosine similarity, `bm25`
    its BM25 and `text_score` that as a share of the best. `highlights` are spans of `excerpt`.
    Ranks count from 1 in each leg, None where the leg did not find it; `page_label` is what is
    printed on the page where that is not its number; `matched_words` are words of the query as they
    stand in the chunk; `context` are the caption and the header of the table whose rows the chunk
    begins with; `duplicate_count` counts near-identical chunks that this one stands for."""

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
    parts: Parts = NO_PARTS
    bm25: float = 0.0


@dataclass(frozen=True, slots=True)
class UsedParameters:
    """What a search went by, whether the request or the configuration said so."""

    top_n: int
    fusion: Fusion
    normalisation: Normalisation
    weights: Weights
    rrf_k: int


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Hits in order, best first. `search_method` is what really ran; `degraded` says in codes
    what it did without (``embedder_unavailable``, ``keyword_unavailable``). The counts are of what
    each leg found, shown or not. `used` is None where nothing was searched."""

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
