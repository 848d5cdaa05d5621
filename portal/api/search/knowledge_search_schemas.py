"""Bodies of searches in the knowledge API."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from portal.api.schemas import CleanText, PageLabel, RequestModel, ResponseModel, ScopeBody
from portal.domain.documents import DocumentStatus
from portal.domain.search import (
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    Fusion,
    Normalisation,
    SearchMode,
)
from portal.domain.search.explaining import MissingReason

Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class WeightsModel(RequestModel):
    vector: Weight = 0.7
    text: Weight = 0.3


class SearchBody(RequestModel):
    query: CleanText = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["年假有多少天？"]
    )
    top_n: int | None = Field(None, ge=1, le=MAX_RESULTS, description="default: as configured, 5")
    mode: SearchMode = Field(SearchMode.HYBRID, description="by meaning, by keywords, or both")
    fusion: Fusion | None = Field(None, description="default: as configured")
    normalisation: Normalisation | None = Field(
        None, description="how weighted fusion normalises both scores; default: as configured"
    )
    weights: WeightsModel | None = Field(None, description="default: as configured, 0.7 and 0.3")
    domain: CleanText | None = Field(None, max_length=100, description="only this domain")
    conversation_id: UUID | None = Field(
        None, description="apply the switches of this conversation"
    )
    scope: ScopeBody | None = Field(None, description="only these, among what is switched on")
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="minimum `confidence` in hybrid and vector mode, minimum `score` in "
        "keyword mode; if fewer than `top_n` passages reach it, keyword results"
        " with `source` `keyword` are added",
    )
    fuzzy: bool = Field(
        False, description="search for likely spellings of words that occur in no document"
    )
    explain: bool = Field(
        False, description="return the plan, the time of each leg, and the parts of each score"
    )


class PartsModel(ResponseModel):
    """The addends of a score."""

    vector: float = Field(description="contribution of meaning", examples=[0.42])
    text: float = Field(description="contribution of keywords", examples=[0.3])
    domain: float = Field(description="contribution of the preferred domain", examples=[0.0])
    proximity: float = Field(
        description="contribution of adjacent or translated words", examples=[0.1]
    )


class ResultModel(ResponseModel):
    document_id: UUID
    chunk_id: UUID
    title: str
    excerpt: str
    highlights: list[list[int]] = Field(
        description="[start, end] in characters of the excerpt", examples=[[[0, 2]]]
    )
    context: str | None = Field(
        description="caption and header of the table whose rows the excerpt begins with; null if "
        "it begins with something else, or with the header",
        examples=["工龄与年假\n工龄 | 年假天数"],
    )
    page: int | None
    page_label: PageLabel
    heading: str | None
    score: float = Field(
        description="the sort key; its scale depends on the fusion. In keyword mode the "
        "best passage has 1"
    )
    parts: PartsModel | None = Field(
        description="with `explain`: the addends of `score`", examples=[None]
    )
    vector_score: float | None = Field(description="cosine similarity")
    text_score: float = Field(description="BM25 relative to that of the best passage, in [0, 1]")
    bm25: float = Field(description="BM25 itself, without an upper bound", examples=[7.42])
    confidence: float = Field(description="calibrated probability that the passage is relevant")
    low_confidence: bool
    source: SearchMode
    vector_rank: int | None = Field(
        description="rank by meaning, from 1; null if not found by meaning"
    )
    text_rank: int | None = Field(
        description="rank by keywords, from 1; null if not found by keywords"
    )
    rerank_score: float | None = Field(description="score of the re-ranking model, if one was used")
    matched_words: list[str] = Field(
        description="words of the question as they occur in the passage", examples=[["年假"]]
    )
    duplicate_count: int = Field(description="number of near-identical passages it represents")
    url: str = Field(description="address of the document at the passage")


class CorrectionModel(ResponseModel):
    query: str = Field(description="the corrected question")
    replaced: list[tuple[str, str]] = Field(
        description="pairs of [typed, corrected]", examples=[[["anual", "annual"]]]
    )
    is_applied: bool = Field(description="whether it was applied or only suggested")


class SearchParametersModel(ResponseModel):
    """The parameters of a search, from the request or the configuration."""

    top_n: int = Field(examples=[5])
    fusion: Fusion
    normalisation: Normalisation
    weights: LegSharesModel
    rrf_k: int = Field(examples=[60])


class LegSharesModel(ResponseModel):
    """Weights that add up to 1."""

    vector: float = Field(examples=[0.7])
    text: float = Field(examples=[0.3])


class SearchResponse(ResponseModel):
    query: str
    results: list[ResultModel]
    total_count: int = Field(
        description="passages that the search compared, or of them those that reach `threshold`; a"
        " larger `top_n` compares more"
    )
    search_method: SearchMode
    degraded: list[str] = Field(
        description="unavailable parts of the search, as codes", examples=[[]]
    )
    correction: CorrectionModel | None = Field(
        None, description="another spelling of the query", examples=[None]
    )
    off_topic: bool = Field(description="whether no result looks relevant")
    explanation: dict[str, Any] | None = Field(
        None, description="with `explain`: the plan and times", examples=[None]
    )
    used: SearchParametersModel | None = Field(
        None, description="the parameters used; null if nothing was searched"
    )


class WhyQuery(RequestModel):
    query: CleanText = Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="the question of the search",
        examples=["年假有多少天？"],
    )
    document_id: UUID = Field(description="the missing document")
    conversation_id: UUID | None = Field(
        None, description="apply the switches of this conversation"
    )
    mode: SearchMode = Field(SearchMode.HYBRID, description="as in the search")
    fusion: Fusion | None = Field(None, description="as in the search")
    normalisation: Normalisation | None = Field(None, description="as in the search")
    domain: CleanText | None = Field(None, max_length=100, description="as in the search")
    threshold: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="as in the search"
    )
    fuzzy: bool = Field(False, description="as in the search")
    top_n: int | None = Field(None, ge=1, le=MAX_RESULTS, description="as in the search")


class FailedFilterModel(ResponseModel):
    kind: Literal["domain", "type", "title", "phrase", "word", "facet", "together"]
    operand: str = Field(examples=["年假"])


class OtherDocumentModel(ResponseModel):
    id: UUID
    title: str
    rank: int


class WhyResponse(ResponseModel):
    document_id: UUID
    title: str
    reason: MissingReason = Field(
        description="`in_results`: it is among the results, at `rank`",
        examples=[MissingReason.IN_RESULTS],
    )
    message: str = Field(description="the reason and what to do, in the reader's language")
    rank: int | None = Field(description="rank of its best passage, from 1")
    ranked_beyond: int | None = Field(
        description="with `ranked`: it ranks below this many passages"
    )
    shown_count: int | None = Field(description="number of results of the search")
    score: float | None
    threshold: float | None
    chunk_id: UUID | None = Field(description="its best passage, if it has a rank")
    status: DocumentStatus | None = Field(description="with `not_ready`")
    failed_filter: FailedFilterModel | None = Field(
        description="with `excluded_by_filter`", examples=[None]
    )
    duplicate_of: OtherDocumentModel | None = Field(
        description="the result that it duplicates", examples=[None]
    )
