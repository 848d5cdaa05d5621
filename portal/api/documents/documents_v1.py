"""Serve /v1: documents as stored, search with scores that add up, answers, backfill."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from portal.api.blueprint import ApiBlueprint
from portal.api.documents.schemas import documents_v1 as schemas
from portal.api.schemas import read_scope
from portal.domain.addresses import chunk_url
from portal.domain.documents import DocumentFilter
from portal.domain.documents.selection import AskScope
from portal.domain.search import Weights
from portal.http import context
from portal.http.messages import error_message
from portal.services.answers import single_answer
from portal.services.documents import library
from portal.services.models import backfilling
from portal.services.search.programs import document_search
from portal.services.search.programs.document_search import DocumentHit

blueprint = ApiBlueprint(
    "documents_v1",
    __name__,
    url_prefix="/v1",
    tag={"name": "Documents v1", "description": "Documents, search and answers with plain scores."},
)

# Programs compare answers with it, so it is the same in every language; `message` says why.
ANSWER_UNAVAILABLE = "answer unavailable"


@blueprint.get("/documents")
def list_documents(query_data: schemas.DocumentPageQuery) -> schemas.DocumentPageResponse:
    """List documents.

    Lists them newest first, and only those whose text `/v1/documents/{document_id}` returns.
    """
    page = library.list_documents(
        *context.caller(),
        filters=DocumentFilter(has_text=True),
        cursor=query_data.cursor,
        limit=query_data.limit,
    )
    return schemas.DocumentPageResponse.of(page, documents=page.items)


@blueprint.get("/documents/<uuid:document_id>")
def get_document(document_id: UUID) -> schemas.StoredDocumentModel:
    """Get a document as stored.

    Returns its title and its text as indexed. 404 for a document without text, because it is still
    being read or could not be read.
    """
    services, user = context.caller()
    summary = library.get_summary(services, user, document_id)
    _, body = library.read_text(services, user, document_id)
    return schemas.StoredDocumentModel.of(summary, body=body)


@blueprint.get("/search", errors=(404,))
def search_by_address(query_data: schemas.DocumentSearchQuery) -> schemas.DocumentSearchResponse:
    """Search documents with the configured weights."""
    return _search(query_data.q, query_data.limit, None, query_data.to_scope())


@blueprint.post("/search", errors=(404,))
@context.reads
def search(json_data: schemas.DocumentSearchBody) -> schemas.DocumentSearchResponse:
    """Search documents.

    Returns one hit per document, for its best passage. If the embedding model does not answer in
    time, only keywords are searched: `degraded` is true and `reasons` says why.
    """
    scope = read_scope(json_data.scope)
    return _search(json_data.query, json_data.limit, json_data.weights, scope)


def _search(
    query: str,
    limit: int,
    requested: schemas.HybridWeightsModel | None,
    scope: AskScope | None = None,
) -> schemas.DocumentSearchResponse:
    weights = _weights(requested)
    found = document_search.search(
        *context.caller(), query, limit=limit, weights=weights, scope=scope
    )
    return schemas.DocumentSearchResponse(
        query=found.query,
        hits=_hits(found.hits, found.query),
        weights=schemas.UsedWeightsModel.of(weights),
        degraded=bool(found.degraded),
        reasons=list(found.degraded),
    )


def _weights(requested: schemas.HybridWeightsModel | None) -> Weights:
    weights = document_search.default_weights(context.services())
    if requested is None:
        return weights
    return Weights(
        vector=weights.vector if requested.vector is None else requested.vector,
        text=weights.text if requested.text is None else requested.text,
    )


def _hits(hits: Sequence[DocumentHit], query: str) -> list[schemas.DocumentHitModel]:
    return [_hit(hit, query) for hit in hits]


def _hit(hit: DocumentHit, query: str) -> schemas.DocumentHitModel:
    chunk = hit.chunk
    return schemas.DocumentHitModel.of(
        chunk,
        id=chunk.document_id,
        text_score=hit.text_score,
        vec_score=hit.vec_score,
        final_score=hit.final_score,
        highlights=[[span.start, span.end] for span in chunk.highlights],
        url=chunk_url(chunk.document_id, chunk.chunk_id, query),
    )


@blueprint.post("/answer", errors=(404,))
@context.reads
def answer(json_data: schemas.AnswerBody) -> schemas.AnswerResponse:
    """Answer a question.

    Answers from the best passage of each of the first `k` documents found. Nothing is stored. The
    hits are returned even if the chat model gives no answer.
    """
    answered = single_answer.answer(
        *context.caller(),
        json_data.query,
        k=json_data.k,
        weights=_weights(json_data.weights),
        language="zh" if context.language().startswith("zh") else "en",
        scope=read_scope(json_data.scope),
    )
    return schemas.AnswerResponse(
        answer=ANSWER_UNAVAILABLE if answered.error is not None else answered.text,
        citations=list(answered.citations),
        hits=_hits(answered.hits, json_data.query),
        status=answered.status,
        message=error_message(answered.error) if answered.error is not None else None,
        degraded=bool(answered.degraded),
        reasons=list(answered.degraded),
    )


@blueprint.post("/ingest/embed", body_is_optional=True, errors=(409,))
@context.for_administrators
def embed(json_data: schemas.EmbedBody) -> schemas.EmbedResponse:
    """Embed passages without a vector.

    Embeds one batch with the active model, all or nothing. Concurrent callers take turns and embed
    no passage twice.
    """
    done = backfilling.embed_batch(*context.caller(), batch_size=json_data.batch_size)
    return schemas.EmbedResponse.of(done)
