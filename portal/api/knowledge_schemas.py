"""Bodies of the knowledge API: what it takes and what it gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.documents import DocumentStatus, MediaType, Visibility
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS, Fusion, SearchMode

Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class WeightsModel(RequestModel):
    vector: Weight = 0.7
    text: Weight = 0.3


class SearchBody(RequestModel):
    query: CleanText = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["年假有多少天？"]
    )
    top_n: int | None = Field(None, ge=1, le=MAX_RESULTS, description="unset: the configured 5")
    mode: SearchMode = SearchMode.HYBRID
    fusion: Fusion | None = Field(None, description="unset: the configured one")
    weights: WeightsModel | None = Field(None, description="unset: the configured 0.7 and 0.3")
    domain: CleanText | None = Field(None, max_length=100, description="only this domain")
    conversation_id: UUID | None = Field(None, description="apply this conversation's switches")
    threshold: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="leave out what scores below"
    )
    explain: bool = Field(False, description="say which plan ran and how long each leg took")


class ResultModel(ResponseModel):
    document_id: UUID
    chunk_id: UUID
    title: str
    excerpt: str
    highlights: list[list[int]] = Field(description="[start, end] in characters of the excerpt")
    page: int | None
    heading: str | None
    score: float = Field(description="orders the results; its scale is the fusion's")
    vector_score: float | None = Field(description="cosine similarity")
    text_score: float = Field(description="BM25 in [0, 1]")
    confidence: float = Field(description="calibrated chance that the passage is relevant")
    low_confidence: bool
    source: SearchMode
    url: str = Field(description="opens the document at the passage")


class SearchResponse(ResponseModel):
    query: str
    results: list[ResultModel]
    total_count: int
    search_method: SearchMode
    degraded: list[str] = Field(description="what the search did without")
    off_topic: bool = Field(description="nothing found looks like an answer")
    explanation: dict[str, Any] | None = None


class FailureModel(ResponseModel):
    code: str
    message: str


class DocumentModel(ResponseModel):
    id: UUID
    title: str
    file_name: str
    type: Literal["PDF", "TXT", "MD"]
    media_type: MediaType
    bytes: int
    status: DocumentStatus
    error: FailureModel | None
    visibility: Visibility
    domain: str | None
    owner: str
    job_id: UUID | None
    chunk_count: int
    created_at: AwareDatetime
    url: str


class DocumentDetailModel(DocumentModel):
    sha256: str
    revision_id: UUID | None
    extractor: str | None
    encoding: str | None
    page_count: int
    character_count: int
    warnings: list[str]


class DocumentListResponse(ResponseModel):
    documents: list[DocumentModel]
    total_count: int
    next_cursor: str | None


class DocumentQuery(RequestModel):
    status: DocumentStatus | None = None
    type: Literal["pdf", "txt", "md", "PDF", "TXT", "MD"] | None = None
    domain: CleanText | None = Field(None, max_length=100)
    q: CleanText | None = Field(None, max_length=300, description="part of the title")
    cursor: CleanText | None = Field(None, max_length=300)
    limit: int = Field(50, ge=1, le=200)


class UploadedModel(DocumentModel):
    is_duplicate: bool = Field(description="the same bytes were already there")


class UploadResponse(ResponseModel):
    documents: list[UploadedModel]


UPLOAD_BODY = {
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {
                        "type": "array",
                        "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                    },
                    "title": {"type": "string", "maxLength": 300},
                    "domain": {"type": "string", "maxLength": 100},
                    "visibility": {"type": "string", "enum": ["shared", "private"]},
                },
            }
        }
    },
    "required": True,
}


IDEMPOTENCY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "description": "the same key and body get the same answer for a day",
}


class DeleteQuery(RequestModel):
    purge: bool = Field(False, description="erase for good instead of moving to the trash")


class ContentResponse(ResponseModel):
    id: UUID
    revision_id: UUID
    text: str
