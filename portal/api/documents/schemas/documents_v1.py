"""Bodies of /v1: documents, hits whose scores add up, answers that cite documents, backfill."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field

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
from portal.services.answers.single_answer import AnswerStatus
from portal.services.models.backfilling import DEFAULT_BATCH

_MAX_WEIGHT = 1000

Query = Annotated[
    CleanText,
    Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        examples=["年假有多少天？"],
        description="text and nothing else: what looks like SQL or markup is looked for",
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
    limit: int = Field(50, ge=1, le=200, description="documents a page")


class DocumentPageResponse(ResponseModel):
    documents: list[DocumentHeadModel]
    total_count: int
    next_cursor: str | None = Field(description="null: the last page", examples=[None])


class HybridWeightsModel(RequestModel):
    """Not both 0; one that is left out is as configured."""

    text: Weight = Field(None, description="of `text_score`; configured: 0.35")
    vector: Weight = Field(None, description="of `vec_score`; configured: 0.65")


class DocumentSearchQuery(ScopeQuery):
    q: Query
    limit: int = Field(10, ge=1, le=MAX_RESULTS, description="documents wanted")


class DocumentSearchBody(RequestModel):
    query: Query
    limit: int = Field(10, ge=1, le=MAX_RESULTS, description="documents wanted")
    weights: HybridWeightsModel | None = None
    scope: ScopeBody | None = SCOPE


class UsedWeightsModel(ResponseModel):
    text: float
    vector: float


class DocumentHitModel(ResponseModel):
    """A document with its best passage."""

    id: UUID = Field(description="the document's, as `document_id`")
    document_id: UUID
    title: str
    text_score: float = Field(description="BM25 as a share of the best passage's, in [0, 1]")
    vec_score: float = Field(description="cosine to the question; 0 where there is no vector")
    final_score: float = Field(
        description="weights.text × text_score + weights.vector × vec_score; orders the hits"
    )
    chunk_id: UUID = Field(description="the passage that scores best")
    excerpt: str = Field(description="of that passage")
    highlights: list[list[int]] = Field(description="[start, end] in characters of the excerpt")
    page: int | None
    page_label: PageLabel
    heading: str | None
    confidence: float = Field(description="calibrated probability that the passage is relevant")
    low_confidence: bool
    source: SearchMode = Field(description="what found it: words, meaning or both")
    url: str = Field(description="opens the document at the passage")


class DegradedModel(ResponseModel):
    degraded: bool = Field(description="whether part of the search was unavailable")
    reasons: list[str] = Field(
        description="what, in codes such as `embedder_unavailable`: words alone were searched",
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
        description="Markdown; marker [n] names the n-th of `citations`. `answer unavailable` "
        "where the chat model gave nothing",
        examples=["每年十五天 [1]。"],
    )
    citations: list[UUID] = Field(description="documents that the answer cites, by first use")
    hits: list[DocumentHitModel] = Field(description="the passages used, best first")
    status: AnswerStatus = Field(
        description="`abstained`: what was found holds no answer, and `answer` says so"
    )
    message: str | None = Field(None, description="with `unavailable`: why, and what to do")


class EmbedBody(RequestModel):
    batch_size: int = Field(
        DEFAULT_BATCH, ge=1, le=1000, description="maximum number of passages to embed"
    )


class EmbedResponse(ResponseModel):
    model: str = Field(description="the embedding model that serves", examples=["hashing-384"])
    embedded: int = Field(description="passages that got a vector now")
    remaining: int = Field(description="passages that still have none")
