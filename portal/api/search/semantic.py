"""Serve `semantic_search` over HTTP."""

from __future__ import annotations

from uuid import UUID

from apiflask import APIBlueprint

from portal.api.search.semantic_schemas import (
    HybridStatusModel,
    SemanticResultModel,
    SemanticSearchBody,
    SemanticSearchResponse,
)
from portal.domain.addresses import chunk_url
from portal.domain.semantic import SemanticResult
from portal.http import context
from portal.services.search import portal_semantic

blueprint = APIBlueprint(
    "semantic",
    __name__,
    url_prefix="/api/semantic_search",
    tag={"name": "Semantic search", "description": "Passages by meaning, or by meaning and words."},
)

_DESCRIPTION = (
    "By meaning alone, or, with `USE_HYBRID_SEARCH` on, by meaning and words: both lists are fused "
    "by reciprocal ranks (k = 60). Where one of the two fails the other answers, and `degraded` "
    "says so."
)


@blueprint.post("")
@context.reads
@blueprint.input(SemanticSearchBody, location="json")
@blueprint.output(SemanticSearchResponse)
@blueprint.doc(summary="Search passages by meaning", description=_DESCRIPTION)
def search(json_data: SemanticSearchBody) -> SemanticSearchResponse:
    return _search(json_data)


@blueprint.get("")
@blueprint.input(SemanticSearchBody, location="query")
@blueprint.output(SemanticSearchResponse)
@blueprint.doc(summary="Search passages by meaning, by address", description=_DESCRIPTION)
def search_by_address(query_data: SemanticSearchBody) -> SemanticSearchResponse:
    return _search(query_data)


def _search(asked: SemanticSearchBody) -> SemanticSearchResponse:
    outcome = portal_semantic.semantic_search(
        *context.caller(),
        asked.query,
        limit=asked.limit,
        threshold=asked.threshold,
        content_type=asked.content_type,
    )
    return SemanticSearchResponse(
        query=asked.query,
        results=[_result(one, asked.query) for one in outcome.results],
        count=len(outcome.results),
        method=outcome.method,
        hybrid_enabled=outcome.is_hybrid_enabled,
        degraded=list(outcome.degraded),
    )


def _result(result: SemanticResult, query: str) -> SemanticResultModel:
    url = chunk_url(UUID(result.document_id), UUID(result.id), query)
    return SemanticResultModel.of(result, url=url)


@blueprint.get("/status")
@blueprint.output(HybridStatusModel)
@blueprint.doc(summary="Whether semantic search is hybrid right now")
def show_status() -> HybridStatusModel:
    return HybridStatusModel.of(portal_semantic.status(context.services()))
