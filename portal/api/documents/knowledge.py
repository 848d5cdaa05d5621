"""Serve the knowledge API: search, and the documents that it searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from flask import Response, request, stream_with_context

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.schemas import knowledge as schemas
from portal.api.documents.schemas.jobs import JobModel, failure_model
from portal.api.schemas import file_response_doc, read_scope
from portal.api.search import knowledge_search_schemas as search_schemas
from portal.domain.addresses import chunk_url
from portal.domain.documents import DocumentSummary, MediaType, Visibility
from portal.domain.documents.jobs import Job
from portal.domain.search import SearchHit, SearchRequest, Weights
from portal.errors import N_, InvalidInput
from portal.http import context
from portal.http.incoming import (
    form_target,
    form_visibility,
    require_known_fields,
    sent_files,
    store_once,
)
from portal.http.messages import missing_message, translated
from portal.http.responses.downloads import as_download
from portal.limits.bodies import accepts_files
from portal.services.documents import folders, library
from portal.services.documents.ingestion import jobs, rereading
from portal.services.documents.intake import uploads
from portal.services.documents.intake.uploads import UploadReceipt
from portal.services.search import engine, explaining

TAG = {"name": "Knowledge", "description": "Search, and the documents that are searched."}

blueprint = ApiBlueprint("knowledge", __name__, url_prefix="/api/knowledge", tag=TAG)


@blueprint.post("/search", errors=(404,))
@context.reads
def search(json_data: search_schemas.SearchBody) -> search_schemas.SearchResponse:
    """Search by meaning and keywords.

    `threshold` is a minimum for `confidence` in hybrid and vector mode and for `score` in keyword
    mode; if too few passages reach it, keyword results with `source` `keyword` are added, so that
    exact matches are not lost. With `explain` each result has `parts`, which add up to its `score`.
    `used` contains the weights and the fusion.
    """
    if not json_data.query.strip():
        raise InvalidInput("query is blank; enter a question")
    weights = json_data.weights
    if weights is not None and weights.vector + weights.text <= 0:
        raise InvalidInput("weights are both 0; at least one must be greater than 0")
    outcome = engine.search(
        *context.caller(),
        SearchRequest(
            query=json_data.query,
            top_n=json_data.top_n,
            mode=json_data.mode,
            fusion=json_data.fusion,
            normalisation=json_data.normalisation,
            weights=Weights(weights.vector, weights.text) if weights else None,
            domain=json_data.domain,
            conversation_id=json_data.conversation_id,
            scope=read_scope(json_data.scope),
            threshold=json_data.threshold,
            fuzzy=json_data.fuzzy,
            explain=json_data.explain,
        ),
    )
    results = [_result(hit, outcome.query, json_data.explain) for hit in outcome.hits]
    return search_schemas.SearchResponse.of(outcome, results=results)


def _result(hit: SearchHit, query: str, is_explained: bool) -> search_schemas.ResultModel:
    return search_schemas.ResultModel.of(
        hit,
        highlights=[[span.start, span.end] for span in hit.highlights],
        parts=hit.parts if is_explained else None,
        url=chunk_url(hit.document_id, hit.chunk_id, query),
    )


@blueprint.get("/search/why", errors=(404,))
def why_not(query_data: search_schemas.WhyQuery) -> search_schemas.WhyResponse:
    """Explain why a document is missing from the results.

    Returns the reason, and the real rank of a document that was searched. Takes the parameters of
    the search; 404 for a document that you may not see.
    """
    if not query_data.query.strip():
        raise InvalidInput("query is blank; enter a question")
    wishes = query_data.model_dump(exclude={"document_id"})
    answer = explaining.why_not(*context.caller(), SearchRequest(**wishes), query_data.document_id)
    return search_schemas.WhyResponse.of(answer, message=missing_message(answer))


def _model(summary: DocumentSummary, job: Job | None) -> schemas.DocumentModel:
    return schemas.DocumentModel.of(
        summary,
        type=summary.media_type.short,
        bytes=summary.size_bytes,
        error=failure_model(summary.failure),
        folder=summary.folder_name,
        owner=summary.owner_name,
        job=JobModel.of_job(job) if job else None,
        warnings=[translated(warning) for warning in summary.warnings],
        url=f"/documents/{summary.id}",
    )


def document_model(summary: DocumentSummary) -> schemas.DocumentModel:
    """Return a document as it is listed, with its last job."""
    (model,) = document_models([summary])
    return model


def document_models(summaries: Sequence[DocumentSummary]) -> list[schemas.DocumentModel]:
    """Return documents as they are listed, each with its last job."""
    job_ids = [summary.job_id for summary in summaries if summary.job_id]
    newest = jobs.newest_jobs(context.services(), job_ids)
    return [_model(summary, newest.get(summary.id)) for summary in summaries]


@blueprint.get("/documents", errors=(404,))
def list_documents(query_data: schemas.DocumentQuery) -> schemas.DocumentListResponse:
    """List documents."""
    page = library.list_documents(
        *context.caller(),
        filters=query_data.filters(),
        sort=query_data.sort,
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    return schemas.DocumentListResponse.of(page, documents=document_models(page.items))


def describe_files(spec: dict[str, Any], path: str, body: dict[str, Any]) -> None:
    """Describe a multipart body, which is streamed and has no model, and its idempotency key."""
    operation = spec["paths"][path]["post"]
    operation["requestBody"] = body
    operation.setdefault("parameters", []).append(schemas.IDEMPOTENCY_HEADER)


def describe_upload(spec: dict[str, Any]) -> None:
    describe_files(spec, "/api/knowledge/documents", schemas.UPLOAD_BODY)


@blueprint.post("/documents", status_code=202, errors=(409, 413, 415, 422, 507))
@accepts_files
def upload_documents() -> schemas.UploadResponse:
    """Upload documents.

    `file` may be repeated: all files are accepted, or none. With `Idempotency-Key`, a repeated
    request gets the same response and stores nothing twice. 413 `quota_exceeded` beyond the quota,
    with `details` `{size_bytes, used_bytes, limit_bytes}`. Without `visibility`, documents are
    shared, or private in a private folder.
    """
    files = sent_files(N_("send the document as multipart form data, in `file`"))
    require_known_fields("title", "domain", "visibility", "folder_id", "path")
    title = request.form.get("title")
    if title and len(files) > 1:
        raise InvalidInput("a title goes with a single file")
    visibility = form_visibility() if "visibility" in request.form else None
    target = replace(form_target(), must_fit=True)

    def store() -> dict[str, Any]:
        receipts = uploads.store_uploads(
            *context.caller(),
            files,
            title=title,
            domain=request.form.get("domain"),
            visibility=visibility,
            target=target,
        )
        return schemas.UploadResponse(documents=uploaded_models(receipts)).model_dump(mode="json")

    values = (
        title,
        request.form.get("domain"),
        str(visibility or Visibility.SHARED),
        str(target.folder_id),
        target.path,
    )
    answer = store_once(store, files, *values)
    # An answer stored for this key may be from an older version, without these fields.
    added: dict[str, Any] = {
        "job": None,
        "warnings": [],
        "folder_id": None,
        "folder": None,
        "tags": [],
    }
    answer["documents"] = [added | document for document in answer["documents"]]
    return schemas.UploadResponse.model_validate(answer)


def uploaded_models(receipts: Sequence[UploadReceipt]) -> list[schemas.UploadedModel]:
    """Return the documents of an upload."""
    models = document_models([receipt.document for receipt in receipts])
    return [
        schemas.UploadedModel.of(model, is_duplicate=receipt.is_duplicate)
        for model, receipt in zip(models, receipts, strict=True)
    ]


@blueprint.get("/documents/<uuid:document_id>")
def get_document(document_id: UUID) -> schemas.DocumentDetailModel:
    """Get a document."""
    detail = library.get_document(*context.caller(), document_id)
    return schemas.DocumentDetailModel.of(detail, **dict(document_model(detail.summary)))


@blueprint.get("/tags")
def list_tags() -> schemas.TagListModel:
    """List the tags of documents."""
    found = library.list_tags(*context.caller())
    return schemas.TagListModel(
        tags=[schemas.TagModel(name=name, document_count=count) for name, count in found]
    )


@blueprint.put("/documents/<uuid:document_id>/tags")
def set_tags(document_id: UUID, json_data: schemas.TagsBody) -> schemas.DocumentModel:
    """Replace a document's tags."""
    library.change_document(*context.caller(), document_id, tags=json_data.tags)
    return document_model(library.get_summary(*context.caller(), document_id))


@blueprint.put("/documents/<uuid:document_id>/folder")
def move_document(document_id: UUID, json_data: schemas.FolderBody) -> schemas.DocumentModel:
    """Move a document into a folder."""
    folders.move_document(*context.caller(), document_id, json_data.folder_id)
    return document_model(library.get_summary(*context.caller(), document_id))


@blueprint.delete("/documents/<uuid:document_id>")
def delete_document(document_id: UUID, query_data: schemas.DeleteQuery) -> None:
    """Delete a document."""
    remove = library.purge_document if query_data.purge else library.delete_document
    remove(*context.caller(), document_id)


@blueprint.post("/documents/<uuid:document_id>/restore", errors=(409,))
def restore_document(document_id: UUID) -> schemas.DocumentModel:
    """Restore a document."""
    library.restore_document(*context.caller(), document_id)
    return document_model(library.get_summary(*context.caller(), document_id))


@blueprint.post(
    "/documents/<uuid:document_id>/reindex",
    body_is_optional=True,
    status_code=202,
    errors=(404, 409),
)
def reindex_document(document_id: UUID, json_data: schemas.ReindexRequest) -> schemas.DocumentModel:
    """Reindex a document.

    Reads the file again, in another encoding or with newly installed parts. Until the new text is
    ready, the current one is searched. 409 while it is being processed, and when the owner has
    another document with the same file.
    """
    rereading.reread(*context.caller(), document_id, encoding=json_data.encoding)
    return document_model(library.get_summary(*context.caller(), document_id))


@blueprint.get("/documents/<uuid:document_id>/content")
def get_content(document_id: UUID) -> schemas.ContentResponse:
    """Get the indexed text."""
    revision_id, text = library.read_text(*context.caller(), document_id)
    return schemas.ContentResponse(id=document_id, revision_id=revision_id, text=text)


@blueprint.get(
    "/documents/<uuid:document_id>/file",
    responses=file_response_doc("the file as it was uploaded", *MediaType),
)
def get_file(document_id: UUID) -> Response:
    """Download the original file."""
    return file_response(library.open_file(*context.caller(), document_id))


def file_response(file: library.StoredFile) -> Response:
    """Return the original as a download: uploads are never rendered as pages of the portal."""
    response = Response(stream_with_context(file.parts), mimetype=file.media_type.value)
    response.content_length = file.size_bytes
    return as_download(response, file.file_name)
