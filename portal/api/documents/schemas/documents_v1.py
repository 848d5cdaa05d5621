"""Bodies of /v1: documents, hits whose scores add up, answers that cite documents, backfill."""

from __future__ import annotations

from typing import Annotated, Self
from uuid import UUID

from pydantic import AwareDatetime, Field, model_validator

from portal.api.schemas import (
    SCOPE,
    TEXT_CURSOR,
    CleanText,
    PageLabel,
    RequestModel,
    ResponseModel,
    ScopeBody,
    ScopeQuery,
    cursor_field,
)
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS, SearchMode
from portal.errors import N_
from portal.services.answers.single_answer import AnswerStatus
from portal.services.models.backfilling import DEFAULT_BATCH

_MAX_WEIGHT = 1000

Query = Annotated[
    CleanText,
    Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        examples=["年假有多少天？"],
        description="plain text: SQL and markup have no special meaning",
    ),
]
Weight = Annotated[float | None, Field(ge=0, le=_MAX_WEIGHT, allow_inf_nan=False)]


class DocumentHeadModel(ResponseModel):
    """A document without its text."""

    id: UUID
    title: str
    created_at: AwareDatetime


class StoredDocumentModel(DocumentHeadModel):
    """A document exactly as it is stored."""

    body: str = Field(description="the text as indexed", examples=["员工每年有十五天带薪年假。"])


class DocumentPageQuery(RequestModel):
    cursor: CleanText | None = cursor_field(TEXT_CURSOR, max_length=2000)
    limit: int = Field(50, ge=1, le=200, description="documents per page")


class DocumentPageResponse(ResponseModel):
    documents: list[DocumentHeadModel]
    total_count: int
    next_cursor: str | None = Field(description="null on the last page", examples=[None])


class HybridWeightsModel(RequestModel):
    """Not both 0; an omitted weight is as configured."""

    text: Weight = Field(None, description="of `text_score`; configured: 0.35")
    vector: Weight = Field(None, description="of `vec_score`; configured: 0.65")

    @model_validator(mode="after")
    def _has_weight(self) -> Self:
        if self.text == 0 and self.vector == 0:
            raise ValueError(N_("must not both be 0"))
        return self


class DocumentSearchQuery(ScopeQuery):
    q: Query
    limit: int = Field(10, ge=1, le=MAX_RESULTS, description="maximum number of documents")


class DocumentSearchBody(RequestModel):
    query: Query
    limit: int = Field(10, ge=1, le=MAX_RESULTS, description="maximum number of documents")
    weights: HybridWeightsModel | None = None
    scope: ScopeBody | None = SCOPE


class UsedWeightsModel(ResponseModel):
    text: float
    vector: float


class DocumentHitModel(ResponseModel):
    """A document with its best passage."""

    id: UUID = Field(description="same as `document_id`")
    document_id: UUID
    title: str
    text_score: float = Field(description="BM25 relative to that of the best passage, in [0, 1]")
    vec_score: float = Field(description="cosine similarity to the question; 0 without a vector")
    final_score: float = Field(
        description="weights.text × text_score + weights.vector × vec_score; orders the hits"
    )
    chunk_id: UUID = Field(description="the best passage")
    excerpt: str = Field(description="excerpt of the best passage")
    highlights: list[list[int]] = Field(description="[start, end] in characters of the excerpt")
    page: int | None
    page_label: PageLabel
    heading: str | None
    confidence: float = Field(description="calibrated probability that the passage is relevant")
    low_confidence: bool
    source: SearchMode = Field(description="found by keywords, by meaning or by both")
    url: str = Field(description="address of the document at the passage")


class DegradedModel(ResponseModel):
    degraded: bool = Field(description="whether part of the search was unavailable")
    reasons: list[str] = Field(
        description="codes such as `embedder_unavailable`: only keywords were searched",
        examples=[[]],
    )


class DocumentSearchResponse(DegradedModel):
    query: str
    hits: list[DocumentHitModel]
    weights: UsedWeightsModel = Field(description="the weights of `final_score`")


class AnswerBody(RequestModel):
    query: Query
    k: int = Field(5, ge=1, le=MAX_RESULTS, description="documents to answer from")
    weights: HybridWeightsModel | None = None
    scope: ScopeBody | None = SCOPE


class AnswerResponse(DegradedModel):
    answer: str = Field(
        description="Markdown; marker [n] refers to the n-th of `citations`. `answer "
        "unavailable` if the language model gave no answer",
        examples=["每年十五天 [1]。"],
    )
    citations: list[UUID] = Field(description="cited documents, in order of first use")
    hits: list[DocumentHitModel] = Field(description="the passages used, best first")
    status: AnswerStatus = Field(
        description="`abstained`: the passages found do not contain an answer, and `answer` says so"
    )
    message: str | None = Field(None, description="with `unavailable`: the reason and what to do")


class EmbedBody(RequestModel):
    batch_size: int = Field(
        DEFAULT_BATCH, ge=1, le=1000, description="maximum number of passages to embed"
    )


class EmbedResponse(ResponseModel):
    model: str = Field(description="the active embedding model", examples=["hashing-384"])
    embedded: int = Field(description="passages that were embedded now")
    remaining: int = Field(description="passages that still have no vector")
