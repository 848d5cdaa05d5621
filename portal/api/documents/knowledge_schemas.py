"""Bodies of the knowledge API."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BeforeValidator, Field

from portal.api.documents.job_schemas import FailureModel, JobModel
from portal.api.schemas import (
    TEXT_CURSOR,
    CleanText,
    PageLabel,
    RequestModel,
    ResponseModel,
    ScopeBody,
    cursor_field,
)
from portal.domain.documents import (
    DocumentFilter,
    DocumentSort,
    DocumentStatus,
    MediaType,
    Visibility,
)
from portal.domain.search import (
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    Fusion,
    Normalisation,
    SearchMode,
)
from portal.domain.search.explaining import MissingReason
from portal.ingest.decoding import ENCODINGS
from portal.text.titles import MAX_TAG_CHARACTERS, MAX_TAGS


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class WeightsModel(RequestModel):
    vector: Weight = 0.7
    text: Weight = 0.3


class SearchBody(RequestModel):
    query: CleanText = Field(
        min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["年假有多少天？"]
    )
    top_n: int | None = Field(None, ge=1, le=MAX_RESULTS, description="unset: the configured 5")
    mode: SearchMode = Field(SearchMode.HYBRID, description="by meaning, by words, or both")
    fusion: Fusion | None = Field(None, description="unset: the configured one")
    normalisation: Normalisation | None = Field(
        None, description="how weighted fusion brings both scores to one scale; unset: configured"
    )
    weights: WeightsModel | None = Field(None, description="unset: the configured 0.7 and 0.3")
    domain: CleanText | None = Field(None, max_length=100, description="only this domain")
    conversation_id: UUID | None = Field(None, description="apply this conversation's switches")
    scope: ScopeBody | None = Field(None, description="only these, of what is switched on")
    threshold: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="cuts `confidence` in hybrid and vector mode and `score` in keyword mode; "
        "where fewer than `top_n` passages reach it, the best by words fill up, with `source` "
        "`keyword`",
    )
    fuzzy: bool = Field(
        False, description="search for likely spellings of words that stand in no document"
    )
    explain: bool = Field(
        False, description="say which plan ran, how long each leg took, and the parts of each score"
    )


class PartsModel(ResponseModel):
    """The addends of a score."""

    vector: float = Field(description="what meaning added", examples=[0.42])
    text: float = Field(description="what words added", examples=[0.3])
    domain: float = Field(description="what the preferred domain added", examples=[0.0])
    proximity: float = Field(description="what words that stand together added", examples=[0.1])


class ResultModel(ResponseModel):
    document_id: UUID
    chunk_id: UUID
    title: str
    excerpt: str
    highlights: list[list[int]] = Field(
        description="[start, end] in characters of the excerpt", examples=[[[0, 2]]]
    )
    page: int | None
    page_label: PageLabel
    heading: str | None
    score: float = Field(
        description="orders the results; its scale is the fusion's. In keyword mode the best has 1"
    )
    parts: PartsModel | None = Field(
        description="with `explain`: what was added up to `score`", examples=[None]
    )
    vector_score: float | None = Field(description="cosine similarity")
    text_score: float = Field(description="BM25 as a share of the best passage's, in [0, 1]")
    bm25: float = Field(description="BM25 itself, without an upper bound", examples=[7.42])
    confidence: float = Field(description="calibrated probability that the passage is relevant")
    low_confidence: bool
    source: SearchMode
    vector_rank: int | None = Field(description="place by meaning, from 1; null: not found by it")
    text_rank: int | None = Field(description="place by words, from 1; null: not found by them")
    rerank_score: float | None = Field(description="of the re-ranking model, where one ran")
    matched_words: list[str] = Field(
        description="words of the question as the passage has them", examples=[["年假"]]
    )
    duplicate_count: int = Field(description="number of near-identical passages it represents")
    url: str = Field(description="opens the document at the passage")


class CorrectionModel(ResponseModel):
    query: str = Field(description="the whole question as it would read")
    replaced: list[tuple[str, str]] = Field(
        description="[as asked, as corrected]", examples=[[["anual", "annual"]]]
    )
    is_applied: bool = Field(description="true: applied; false: a suggestion")


class SearchParametersModel(ResponseModel):
    """The parameters of a search, from the request or the configuration."""

    top_n: int = Field(examples=[5])
    fusion: Fusion
    normalisation: Normalisation
    weights: LegSharesModel
    rrf_k: int = Field(examples=[60])


class LegSharesModel(ResponseModel):
    """Shares: their sum is 1."""

    vector: float = Field(examples=[0.7])
    text: float = Field(examples=[0.3])


class SearchResponse(ResponseModel):
    query: str
    results: list[ResultModel]
    total_count: int
    search_method: SearchMode
    degraded: list[str] = Field(
        description="unavailable parts of the search, as codes", examples=[[]]
    )
    correction: CorrectionModel | None = Field(
        None, description="another spelling of the query", examples=[None]
    )
    off_topic: bool = Field(description="no result looks like an answer")
    explanation: dict[str, Any] | None = Field(
        None, description="with `explain`: plan and times", examples=[None]
    )
    used: SearchParametersModel | None = Field(
        None, description="the parameters used; null: nothing was searched"
    )


class WhyQuery(RequestModel):
    query: CleanText = Field(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="the question of the search",
        examples=["年假有多少天？"],
    )
    document_id: UUID = Field(description="the document that is missed")
    conversation_id: UUID | None = Field(None, description="apply this conversation's switches")
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
    kind: Literal["domain", "type", "title", "phrase", "word", "together"]
    operand: str = Field(examples=["年假"])


class OtherDocumentModel(ResponseModel):
    id: UUID
    title: str
    rank: int


class WhyResponse(ResponseModel):
    document_id: UUID
    title: str
    reason: MissingReason = Field(
        description="`in_results`: it is among them, at `rank`",
        examples=[MissingReason.IN_RESULTS],
    )
    message: str = Field(description="the reason and what to do, in the reader's language")
    rank: int | None = Field(description="place of its best passage among all, from 1")
    ranked_beyond: int | None = Field(description="with `ranked`, it comes after so many")
    shown_count: int | None = Field(description="how many results the search gives")
    score: float | None
    threshold: float | None
    chunk_id: UUID | None = Field(description="its best passage, where it is ranked")
    status: DocumentStatus | None = Field(description="with `not_ready`")
    failed_filter: FailedFilterModel | None = Field(
        description="with `excluded_by_filter`", examples=[None]
    )
    duplicate_of: OtherDocumentModel | None = Field(
        description="the result that says the same", examples=[None]
    )


class DocumentModel(ResponseModel):
    id: UUID
    title: str
    file_name: str
    type: Literal[
        "PDF",
        "TXT",
        "MD",
        "HTML",
        "DOCX",
        "XLSX",
        "CSV",
        "PPTX",
        "EPUB",
        "EML",
        "PNG",
        "JPEG",
        "TIFF",
    ]
    media_type: MediaType
    bytes: int
    status: DocumentStatus = Field(examples=[DocumentStatus.READY])
    error: FailureModel | None = Field(description="why it failed", examples=[None])
    visibility: Visibility
    domain: str | None
    owner: str
    folder_id: UUID | None = Field(description="null: in none that you may see", examples=[None])
    folder: str | None = Field(description="the name of its folder", examples=[None])
    tags: list[str] = Field(examples=[["2026"]])
    job_id: UUID | None = Field(description="its last ingestion")
    job: JobModel | None = Field(description="its progress")
    chunk_count: int
    created_at: AwareDatetime
    url: str
    warnings: list[str] = Field(
        description="parts that could not be read, such as pages without text", examples=[[]]
    )


class DocumentDetailModel(DocumentModel):
    sha256: str
    revision_id: UUID | None
    extractor: str | None = Field(examples=["pypdfium2"])
    encoding: str | None = Field(description="of a text file", examples=[None])
    page_count: int
    character_count: int


class DocumentListResponse(ResponseModel):
    documents: list[DocumentModel]
    total_count: int
    next_cursor: str | None = Field(description="null: the last page", examples=[None])


_TYPES = {one.short.lower(): one for one in MediaType}


class DocumentFilters(RequestModel):
    """What a document must be like; all of it together."""

    status: DocumentStatus | None = Field(None, description="only documents in this state")
    type: (
        Annotated[
            Literal[
                "pdf",
                "txt",
                "md",
                "html",
                "docx",
                "xlsx",
                "csv",
                "pptx",
                "epub",
                "eml",
                "png",
                "jpeg",
                "tiff",
            ],
            BeforeValidator(_lower),
        ]
        | None
    ) = Field(None, description="only documents of this format")
    domain: CleanText | None = Field(None, max_length=100, description="only this domain")
    visibility: Visibility | None = Field(None, description="only shared or only private ones")
    owner_id: UUID | None = Field(None, description="only documents of this user")
    folder_id: UUID | None = Field(None, description="only in this folder and below it")
    tag: CleanText | None = Field(
        None, max_length=MAX_TAG_CHARACTERS, description="only documents with this tag"
    )
    unfiled: bool = Field(False, description="only in no folder")
    q: CleanText | None = Field(None, max_length=300, description="part of the title")

    def filters(self) -> DocumentFilter:
        return DocumentFilter(
            status=self.status,
            media_type=_TYPES[self.type] if self.type else None,
            domain=self.domain,
            title_contains=self.q,
            visibility=self.visibility,
            owner_id=self.owner_id,
            folder_id=self.folder_id,
            is_unfiled=self.unfiled,
            tag=self.tag,
        )


class DocumentQuery(DocumentFilters):
    cursor: CleanText | None = cursor_field(TEXT_CURSOR, max_length=2000)
    sort: DocumentSort = Field(
        DocumentSort.NEWEST, description="a minus means descending; equal ones newest first"
    )
    limit: int = Field(50, ge=1, le=200, description="documents a page")


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
                        "minItems": 1,
                        "items": {"type": "string", "format": "binary"},
                    },
                    "title": {"type": "string", "maxLength": 300},
                    "domain": {"type": "string", "maxLength": 100},
                    "visibility": {"type": "string", "enum": ["shared", "private"]},
                    "folder_id": {
                        "type": "string",
                        "pattern": "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$",
                        "description": "empty: no folder",
                    },
                    "path": {
                        "type": "string",
                        "maxLength": 2000,
                        "description": "folders below `folder_id`, separated by slashes; those "
                        "that are missing are created",
                    },
                },
            }
        }
    },
    "required": True,
}


IDEMPOTENCY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200, "pattern": "^[!-~]{1,200}$"},
    "description": "visible ASCII; the same key and body get the same answer for a day",
}


class TagsBody(RequestModel):
    tags: list[Annotated[CleanText, Field(max_length=MAX_TAG_CHARACTERS)]] = Field(
        max_length=MAX_TAGS, examples=[["2026", "合同"]]
    )


class TagModel(ResponseModel):
    name: str = Field(examples=["合同"])
    document_count: int = Field(description="that you may see")


class TagListModel(ResponseModel):
    tags: list[TagModel]


class FolderBody(RequestModel):
    folder_id: UUID | None = Field(description="null: into no folder")


class DeleteQuery(RequestModel):
    purge: bool = Field(False, description="delete permanently instead of moving to the trash")


class ReindexRequest(RequestModel):
    encoding: CleanText | None = Field(
        None,
        min_length=1,
        max_length=40,
        description="of a text file or a web page, such as `gb18030`; null: as it is recognised",
        examples=["gb18030"],
        json_schema_extra={"enum": [*ENCODINGS, None]},
    )


class ContentResponse(ResponseModel):
    id: UUID
    revision_id: UUID
    text: str
