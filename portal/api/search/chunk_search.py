"""Search chunks by meaning, by words or by both, and find similar ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import read_scope
from portal.api.search import chunk_search_schemas as schemas
from portal.api.search.knowledge_search_schemas import CorrectionModel
from portal.domain.search.chunk_search import (
    FUSION_NAMES,
    FUSIONS,
    FoundChunk,
    FoundChunks,
    HybridQuery,
    SemanticQuery,
    Within,
)
from portal.domain.search.metadata_filter import parse_filter
from portal.errors import BatchTimedOut, InvalidInput
from portal.http import context
from portal.http.messages import error_message
from portal.limits import limited
from portal.limits.bodies import accepts
from portal.services.search.programs import chunk_search

blueprint = ApiBlueprint(
    "chunk_search",
    __name__,
    url_prefix="/api/v1/search",
    tag={"name": "Chunk search", "description": "Passages by meaning, by keywords, or by both."},
)

# Shorter words resemble too many others. Chinese words may have two characters.
_MIN_FUZZY_LENGTH = 3
_NOT_SEARCHED = FoundChunks(items=(), degraded=(BatchTimedOut.code,))


@blueprint.post("/semantic", errors=(404,))
@context.reads
@limited("search_semantic")
# Room for a vector of the maximum length, each number written out.
@accepts(max_kb=512, max_values=20_000)
def search_semantic(json_data: schemas.SemanticBody) -> schemas.SemanticResponse:
    """Search passages by meaning.

    Ranks by cosine similarity, highest first. The query is plain text, without operators.
    """
    query = _semantic_query(json_data)
    found = chunk_search.by_meaning(*context.caller(), query)
    return schemas.SemanticResponse(data=_nearest_of(found))


@blueprint.post("/batch", errors=(404,))
@context.reads
@limited("search_batch")
@accepts(max_kb=8 * 1024, max_values=350_000)
def search_batch(json_data: schemas.BatchBody) -> schemas.BatchResponse:
    """Search passages by meaning, in a batch.

    Each query is answered as by /semantic; if one is invalid, all are refused. They share the time
    limit of one search: queries that exceed it are listed in `errors`, with empty results.
    """
    queries = [_semantic_query(body) for body in json_data.queries]
    found = chunk_search.each_by_meaning(*context.caller(), queries)
    results = [_nearest_of(outcome or _NOT_SEARCHED) for outcome in found]
    late = [place for place, one in enumerate(results) if BatchTimedOut.code in one.degraded]
    message = error_message(BatchTimedOut())
    errors = [
        schemas.BatchErrorModel(index=i, code=BatchTimedOut.code, message=message) for i in late
    ]
    return schemas.BatchResponse(
        data=schemas.BatchResultsModel(results=results, total=len(results), errors=errors)
    )


@blueprint.post("/text", errors=(404,))
@context.reads
@limited("search_text")
def search_text(json_data: schemas.TextBody) -> schemas.TextResponse:
    """Search passages by keywords.

    Ranks by BM25, best first.
    """
    query = json_data.query
    if json_data.fuzzy and query.isascii() and len(query.strip()) < _MIN_FUZZY_LENGTH:
        raise InvalidInput("a fuzzy query needs at least %(min)s letters", min=_MIN_FUZZY_LENGTH)
    found = chunk_search.by_words(
        *context.caller(),
        query,
        top_k=_top_k(json_data.top_k),
        fuzzy=json_data.fuzzy,
        highlight=json_data.highlight,
        within=_read_within(json_data),
    )
    results = [
        schemas.TextModel.of(
            item,
            **_chunk(item),
            relevance_score=item.combined,
            highlighted_content=item.highlighted,
        )
        for item in found.items
    ]
    correction = found.correction and CorrectionModel.of(found.correction)
    return schemas.TextResponse(
        data=schemas.TextResultsModel(
            **_count_results(found), results=results, correction=correction
        )
    )


@blueprint.post("/hybrid", errors=(404,))
@context.reads
@limited("search_hybrid")
def search_hybrid(json_data: schemas.HybridBody) -> schemas.HybridResponse:
    """Search passages by meaning and keywords.

    combined_score can be computed from each result: the weighted mean of its two scores, or the sum
    over its two ranks; `parts` are its addends. Omitted parameters take the configured values;
    `used` contains those that were used.
    """
    query = HybridQuery(
        text=json_data.query_text,
        top_k=_top_k(json_data.top_k),
        vector_weight=json_data.vector_weight,
        text_weight=json_data.text_weight,
        fusion=FUSIONS[json_data.fusion_method] if json_data.fusion_method else None,
        rrf_k=json_data.rrf_k,
        threshold=_threshold(json_data.similarity_threshold),
        within=_read_within(json_data),
    )
    found = chunk_search.by_both(*context.caller(), query)
    results = [
        schemas.HybridModel.of(
            item, **_chunk(item), combined_score=item.combined, vector_score=item.cosine
        )
        for item in found.items
    ]
    return schemas.HybridResponse(
        data=schemas.HybridResultsModel(
            **_count_results(found),
            results=results,
            fusion_method=found.method,
            used=_describe_parameters(found, query.threshold),
        )
    )


@blueprint.get("/similar/<uuid:chunk_id>", errors=(409,))
@limited("search_similar")
def search_similar(chunk_id: UUID, query_data: schemas.SimilarQuery) -> schemas.SimilarResponse:
    """Find similar passages.

    Ranks by cosine similarity to the passage's vector, excluding the passage itself.
    """
    found = chunk_search.similar(
        *context.caller(),
        chunk_id,
        top_k=_top_k(query_data.top_k),
        exclude_same_job=query_data.exclude_same_job,
        conversation_id=query_data.conversation_id,
    )
    return schemas.SimilarResponse(
        data=schemas.SimilarResultsModel(
            **_count_results(found), results=_nearest(found.items), reference_chunk_id=chunk_id
        )
    )


def _semantic_query(body: schemas.SemanticBody) -> SemanticQuery:
    return SemanticQuery(
        text=body.query_text or "",
        vector=None if body.query_vector is None else tuple(body.query_vector),
        top_k=_top_k(body.top_k),
        threshold=_threshold(body.similarity_threshold),
        within=_read_within(body),
    )


def _top_k(requested: int | None) -> int | None:
    max_top_k = context.services().settings.search.max_top_k
    if requested is not None and requested > max_top_k:
        raise InvalidInput("top_k is at most %(max)s here", max=max_top_k)
    return requested


def _threshold(requested: float | None) -> float:
    search = context.services().settings.search
    return search.similarity_threshold if requested is None else requested


def _read_within(body: schemas.WithinBody) -> Within:
    scope = read_scope(body.scope)
    return Within(body.job_id, parse_filter(body.metadata_filter), body.conversation_id, scope)


def _nearest_of(found: FoundChunks) -> schemas.SemanticResultsModel:
    return schemas.SemanticResultsModel(**_count_results(found), results=_nearest(found.items))


def _nearest(items: Iterable[FoundChunk]) -> list[schemas.SimilarModel]:
    return [schemas.SimilarModel(**_chunk(item), similarity=item.cosine) for item in items]


def _chunk(found: FoundChunk) -> dict[str, Any]:
    chunk = found.chunk
    return {
        "chunk": chunk,
        "chunk_id": chunk.id,
        "document_id": chunk.document_id,
        "title": chunk.title,
    }


def _count_results(found: FoundChunks) -> dict[str, Any]:
    return {
        "total": len(found.items),
        "top_k": found.used.top_n if found.used else 0,
        "degraded": list(found.degraded),
    }


def _describe_parameters(
    found: FoundChunks, threshold: float
) -> schemas.HybridParametersModel | None:
    used = found.used
    if used is None:
        return None
    return schemas.HybridParametersModel(
        top_k=used.top_n,
        fusion_method=FUSION_NAMES[used.fusion],
        vector_weight=used.weights.vector,
        text_weight=used.weights.text,
        rrf_k=used.rrf_k,
        similarity_threshold=threshold,
    )
