"""Settings of search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import NoDecode

from portal.settings.base import Section


class HnswSettings(Section):
    """The HNSW index of vectors."""

    enabled: bool = Field(
        True, description="false: no index is built, and each search compares all vectors"
    )
    m: int = Field(16, ge=2, le=100, description="links per node")
    ef_construction: int = Field(64, ge=4, le=1000, description="candidates while building")
    ef_search: int = Field(80, ge=1, le=1000, description="candidates while searching")


class IvfflatSettings(Section):
    """The IVFFlat index of vectors, for servers where HNSW takes too long to build."""

    lists: int = Field(0, ge=0, le=32768, description="number of lists; 0: one per thousand chunks")
    probes: int = Field(20, ge=1, le=32768, description="lists visited while searching")


class PlanSettings(Section):
    """When a search compares all enabled chunks instead of asking the index and filtering."""

    exact_always_chunks: int = Field(
        2_000, ge=0, description="up to this many enabled chunks, all of them are compared"
    )
    exact_chunks: int = Field(
        20_000, ge=0, description="maximum number of chunks to compare when few are enabled"
    )
    exact_share: float = Field(
        0.2, ge=0, le=1, description="“few” means less than this share of all chunks"
    )


class DocumentWeights(Section):
    """Default weights of /v1."""

    text: float = Field(
        0.35,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="default weight of `text_score` in /v1",
    )
    vector: float = Field(
        0.65, ge=0, le=1000, allow_inf_nan=False, description="default weight of `vec_score` in /v1"
    )

    @model_validator(mode="after")
    def _is_some(self) -> DocumentWeights:
        if self.text + self.vector <= 0:
            raise ValueError("two weights of which one is more than 0")
        return self


Language = Literal[
    "english", "simple", "danish", "dutch", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "spanish", "swedish", "turkish",
]  # fmt: skip


class TextSettings(Section):
    """How words are matched and ranked."""

    language: Language = Field(
        "english",
        description="stemmer for words in Latin letters; `simple`: none. Chinese is always "
        "segmented. After a change, a worker analyses existing documents again",
    )
    weights: Annotated[tuple[float, float, float, float], NoDecode] = Field(
        (0.1, 0.2, 0.4, 1.0),
        description="weights of words in the text, the caption, the heading and the title, for "
        "`ts_rank_cd` (PORTAL_SEARCH__KEYWORD_BACKEND is `tsvector`)",
    )
    normalization: int = Field(
        32, ge=0, le=63, description="normalization of `ts_rank_cd`: a sum of PostgreSQL's flags"
    )
    fuzzy_threshold: float = Field(
        0.3,
        ge=0,
        le=1,
        description="minimum similarity between a corrected word and the one typed: the share of "
        "letters that agree",
    )

    @field_validator("weights", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return value.strip("[]{}").split(",") if isinstance(value, str) else value

    @field_validator("weights")
    @classmethod
    def _are_shares(
        cls, value: tuple[float, float, float, float]
    ) -> tuple[float, float, float, float]:
        if not all(0 <= weight <= 1 for weight in value):
            raise ValueError("four numbers from 0 to 1, with commas between them")
        return value


class HybridSettings(Section):
    """Defaults of the settings that administrators change at /admin/search."""

    vector_weight: float = Field(0.7, ge=0, le=1, description="weight of semantic similarity")
    text_weight: float = Field(0.3, ge=0, le=1, description="weight of keyword matches")
    fusion_method: Literal["weighted_sum", "rrf"] = Field(
        "weighted_sum", description="`weighted_sum` adds up scores; `rrf` uses ranks alone"
    )
    rrf_k: int = Field(60, ge=1, le=1000, description="the constant of `rrf`")

    @model_validator(mode="after")
    def _is_some(self) -> HybridSettings:
        if self.vector_weight + self.text_weight <= 0:
            raise ValueError("two weights of which one is more than 0")
        return self


class SearchSettings(Section):
    """How search works; the rest is in the table `dynamic_config`, for administrators."""

    max_top_k: int = Field(100, ge=1, le=100, description="maximum `top_k` of /api/v1/search")
    default_top_k: int = Field(
        10, ge=1, le=100, validate_default=True, description="default `top_k` of /api/v1/search"
    )
    similarity_threshold: float = Field(
        0.0, ge=0, le=1, description="default minimum cosine similarity in /api/v1/search; 0: none"
    )
    hybrid: HybridSettings = HybridSettings()
    text: TextSettings = TextSettings()
    keyword_backend: Literal["auto", "pg_textsearch", "tsvector", "off"] = Field(
        "auto", description="what ranks keyword matches"
    )
    bm25_k1: float = Field(1.2, ge=0, le=10, description="saturation of repeated words")
    bm25_b: float = Field(0.75, ge=0, le=1, description="how much long chunks are penalized")
    index: Literal["hnsw", "ivfflat"] = Field("hnsw", description="kind of vector index")
    vector_type: Literal["halfvec", "vector", "bit"] = Field(
        "halfvec",
        description="what the index stores of a vector: half or full precision, or only the signs. "
        "Above 2000 dimensions `vector` becomes `halfvec`, above 4000 both become `bit`",
    )
    hnsw: HnswSettings = HnswSettings()
    ivfflat: IvfflatSettings = IvfflatSettings()
    plan: PlanSettings = PlanSettings()
    weights: DocumentWeights = DocumentWeights()
    statement_timeout_s: float = Field(10.0, gt=0, le=600, description="time limit of a search")
    cache_ttl_s: int = Field(
        300,
        ge=0,
        le=86400,
        description="lifetime of cached results, which are never stale; 0: no cache",
    )
    cache_mb: int = Field(
        32, ge=1, le=4096, description="memory for cached results in each process"
    )

    @field_validator("default_top_k")
    @classmethod
    def _is_accepted(cls, value: int, info: ValidationInfo) -> int:
        if value > info.data.get("max_top_k", value):
            raise ValueError(f"at most PORTAL_SEARCH__MAX_TOP_K, {info.data['max_top_k']}")
        return value


def uses_bm25(settings: SearchSettings) -> bool:
    """Return whether the settings let BM25 rank words."""
    return settings.keyword_backend in {"auto", "pg_textsearch"}
