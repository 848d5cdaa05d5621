"""The knowledge API of seed 001: search, and the documents that it searches."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote
from uuid import UUID

from apiflask import APIBlueprint
from flask import Response, request, stream_with_context
from pydantic import AwareDatetime, Field

from portal import context
from portal.api.schemas import CleanText, RequestModel, ResponseModel, error_responses
from portal.domain.documents import (
    DocumentDetail,
    DocumentFilter,
    DocumentStatus,
    DocumentSummary,
    MediaType,
    Visibility,
)
from portal.domain.search import (
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    Fusion,
    SearchHit,
    SearchMode,
    SearchRequest,
    Weights,
)
from portal.errors import InvalidInput, MalformedRequest
from portal.phrases import failure_message
from portal.services import idempotency, library, searching, uploads
from portal.services.uploads import UploadReceipt

blueprint = APIBlueprint("knowledge", __name__, url_prefix="/api/knowledge", tag="Knowledge")

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


@blueprint.post("/search")
@blueprint.input(SearchBody, location="json")
@blueprint.output(SearchResponse)
@blueprint.doc(
    summary="Search by meaning and by words",
    security="bearer",
    responses=error_responses(400, 401, 404, 422, 429, 503),
)
def search(json_data: SearchBody) -> SearchResponse:
    if not json_data.query.strip():
        raise InvalidInput(reason="query")
    weights = json_data.weights
    if weights is not None and weights.vector + weights.text <= 0:
        raise InvalidInput(reason="weights")
    outcome = searching.search(
        context.services(),
        context.person(),
        SearchRequest(
            query=json_data.query,
            top_n=json_data.top_n,
            mode=json_data.mode,
            fusion=json_data.fusion,
            weights=Weights(weights.vector, weights.text) if weights else None,
            domain=json_data.domain,
            conversation_id=json_data.conversation_id,
            threshold=json_data.threshold,
            explain=json_data.explain,
        ),
    )
    return SearchResponse(
        query=outcome.query,
        results=[_result(hit, outcome.query) for hit in outcome.hits],
        total_count=outcome.total_count,
        search_method=outcome.search_method,
        degraded=list(outcome.degraded),
        off_topic=outcome.off_topic,
        explanation=outcome.explanation,
    )


def _result(hit: SearchHit, query: str) -> ResultModel:
    return ResultModel(
        document_id=hit.document_id,
        chunk_id=hit.chunk_id,
        title=hit.title,
        excerpt=hit.excerpt,
        highlights=[[span.start, span.end] for span in hit.highlights],
        page=hit.page,
        heading=hit.heading,
        score=hit.score,
        vector_score=hit.vector_score,
        text_score=hit.text_score,
        confidence=hit.confidence,
        low_confidence=hit.low_confidence,
        source=hit.source,
        url=f"/documents/{hit.document_id}?chunk={hit.chunk_id}&q={quote(query[:200], safe='')}"
        f"#chunk-{hit.chunk_id}",
    )


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


_TYPES = {media_type.short: media_type for media_type in MediaType}


def _fields(summary: DocumentSummary) -> dict[str, Any]:
    failure = summary.failure
    return {
        "id": summary.id,
        "title": summary.title,
        "file_name": summary.file_name,
        "type": summary.media_type.short,
        "media_type": summary.media_type,
        "bytes": summary.size_bytes,
        "status": summary.status,
        "error": FailureModel(code=failure.code, message=failure_message(failure))
        if failure
        else None,
        "visibility": summary.visibility,
        "domain": summary.domain,
        "owner": summary.owner_name,
        "job_id": summary.job_id,
        "chunk_count": summary.chunk_count,
        "created_at": summary.created_at,
        "url": f"/documents/{summary.id}",
    }


@blueprint.get("/documents")
@blueprint.input(DocumentQuery, location="query")
@blueprint.output(DocumentListResponse)
@blueprint.doc(
    summary="List documents", security="bearer", responses=error_responses(400, 401, 422)
)
def list_documents(query_data: DocumentQuery) -> DocumentListResponse:
    page = library.list_documents(
        context.services(),
        context.person(),
        filters=DocumentFilter(
            status=query_data.status,
            media_type=_TYPES[query_data.type.upper()] if query_data.type else None,
            domain=query_data.domain,
            title_contains=query_data.q,
        ),
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    return DocumentListResponse(
        documents=[DocumentModel(**_fields(item)) for item in page.items],
        total_count=page.total_count,
        next_cursor=page.next_cursor,
    )


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


def describe_upload(spec: dict[str, Any]) -> None:
    """Add the multipart body, which is read as a stream and has no model, to the document."""
    operation = spec["paths"]["/api/knowledge/documents"]["post"]
    operation["requestBody"] = UPLOAD_BODY
    operation.setdefault("parameters", []).append(IDEMPOTENCY_HEADER)


@blueprint.post("/documents")
@blueprint.output(UploadResponse, status_code=202)
@blueprint.doc(
    summary="Upload documents",
    description="`file` may be repeated. With `Idempotency-Key` a repeated request gets the same "
    "answer and stores nothing twice.",
    security="bearer",
    responses=error_responses(400, 401, 409, 413, 415, 422, 429),
)
def upload_documents() -> UploadResponse:
    files = request.files.getlist("file")
    if not files:
        raise MalformedRequest(reason="send the document as multipart form data, in `file`")
    title = request.form.get("title")
    if title and len(files) > 1:
        raise InvalidInput(reason="a title goes with a single file")
    try:
        visibility = Visibility(request.form.get("visibility", "shared"))
    except ValueError as error:
        raise InvalidInput(reason="visibility is shared or private") from error

    def store() -> dict[str, Any]:
        receipts = uploads.store_uploads(
            context.services(),
            context.person(),
            [uploads.Upload(file.stream, file.filename or "unnamed") for file in files],
            title=title,
            domain=request.form.get("domain"),
            visibility=visibility,
        )
        response = UploadResponse(documents=[_uploaded(receipt) for receipt in receipts])
        return response.model_dump(mode="json")

    answer = idempotency.once(
        context.services(),
        context.person(),
        key=request.headers.get("Idempotency-Key"),
        body_sha256=lambda: uploads.digest_of(
            [file.stream for file in files],
            [title, request.form.get("domain"), visibility.value, *(f.filename for f in files)],
        ),
        action=store,
    )
    return UploadResponse.model_validate(answer)


def _uploaded(receipt: UploadReceipt) -> UploadedModel:
    return UploadedModel(**_fields(receipt.document), is_duplicate=receipt.is_duplicate)


@blueprint.get("/documents/<uuid:document_id>")
@blueprint.output(DocumentDetailModel)
@blueprint.doc(summary="One document", security="bearer", responses=error_responses(401, 404))
def get_document(document_id: UUID) -> DocumentDetailModel:
    detail: DocumentDetail = library.get_document(context.services(), context.person(), document_id)
    return DocumentDetailModel(
        **_fields(detail.summary),
        sha256=detail.sha256,
        revision_id=detail.revision_id,
        extractor=detail.extractor,
        encoding=detail.encoding,
        page_count=detail.page_count,
        character_count=detail.character_count,
        warnings=list(detail.warnings),
    )


class DeleteQuery(RequestModel):
    purge: bool = Field(False, description="erase for good instead of moving to the trash")


@blueprint.delete("/documents/<uuid:document_id>")
@blueprint.input(DeleteQuery, location="query")
@blueprint.output({}, status_code=204)
@blueprint.doc(
    summary="Delete a document", security="bearer", responses=error_responses(401, 403, 404, 422)
)
def delete_document(document_id: UUID, query_data: DeleteQuery) -> str:
    remove = library.purge_document if query_data.purge else library.delete_document
    remove(context.services(), context.person(), document_id)
    return ""


@blueprint.post("/documents/<uuid:document_id>/restore")
@blueprint.output(DocumentModel)
@blueprint.doc(
    summary="Take out of the trash", security="bearer", responses=error_responses(401, 403, 404)
)
def restore_document(document_id: UUID) -> DocumentModel:
    library.restore_document(context.services(), context.person(), document_id)
    summary = library.get_summary(context.services(), context.person(), document_id)
    return DocumentModel(**_fields(summary))


class ContentResponse(ResponseModel):
    id: UUID
    revision_id: UUID
    text: str


@blueprint.get("/documents/<uuid:document_id>/content")
@blueprint.output(ContentResponse)
@blueprint.doc(
    summary="The text as indexed", security="bearer", responses=error_responses(401, 404)
)
def get_content(document_id: UUID) -> ContentResponse:
    revision_id, text = library.read_text(context.services(), context.person(), document_id)
    return ContentResponse(id=document_id, revision_id=revision_id, text=text)


@blueprint.get("/documents/<uuid:document_id>/file")
@blueprint.doc(summary="The original file", security="bearer", responses=error_responses(401, 404))
def get_file(document_id: UUID) -> Response:
    file = library.open_file(context.services(), context.person(), document_id)
    return file_response(file)


def file_response(file: library.StoredFile) -> Response:
    """The original as a download: what people upload is never shown as a page of ours."""
    response = Response(stream_with_context(file.parts), mimetype=file.media_type.value)
    response.content_length = file.size_bytes
    response.headers["Content-Disposition"] = (
        f"attachment; filename*=UTF-8''{quote(file.file_name, safe='')}"
    )
    return response
