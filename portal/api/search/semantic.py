"""Serve `semantic_search` over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import (
    SCOPE,
    CleanText,
    RequestModel,
    ResponseModel,
    ScopeBody,
    ScopeQuery,
    read_scope,
)
from portal.domain.addresses import chunk_url
from portal.domain.documents.selection import AskScope
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS
from portal.domain.search.semantic import SemanticResult
from portal.http import context
from portal.services.search.programs import portal_semantic
from portal.services.search.programs.semantic import DEFAULT_LIMIT

Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class _SearchArguments(RequestModel):
    query: CleanText = Field(
        max_length=MAX_QUERY_CHARACTERS,
        examples=["年假有多少天？"],
        description="plain text; an empty query finds nothing",
    )
    limit: int = Field(
        DEFAULT_LIMIT,
        le=MAX_RESULTS,
        description="maximum number of results; less than 1 counts as 5",
    )
    threshold: Similarity | None = Field(
        None, description="minimum cosine similarity; default: none"
    )
    content_type: CleanText | None = Field(
        None,
        max_length=200,
        examples=["text/markdown"],
        description="only passages whose metadata names this `content_type`, or whose document is "
        "of this media type",
    )


class SemanticSearchBody(_SearchArguments):
    scope: ScopeBody | None = SCOPE


class SemanticSearchQuery(_SearchArguments, ScopeQuery):
    pass


class SemanticResultModel(ResponseModel):
    id: UUID = Field(description="id of the passage")
    document_id: UUID
    content: str = Field(description="the whole passage")
    similarity: float | None = Field(
        description="cosine similarity to the question; null if either has no vector"
    )
    metadata: dict[str, Any] = Field(
        description="`title`, `content_type`, `page`, `heading`, `chunk_index`, the "
        "metadata given by a program under other names, and `similarity`; for a hybrid search "
        "also `rrf_score`, `dense_rank` and `sparse_rank`",
        examples=[{"title": "员工手册", "content_type": "text/markdown", "similarity": 0.87}],
    )
    url: str = Field(description="address of the document at the passage")


class SemanticSearchResponse(ResponseModel):
    query: str
    results: list[SemanticResultModel]
    count: int = Field(description="number of results")
    method: Literal["dense", "sparse", "hybrid", "none"] = Field(description="how it was searched")
    hybrid_enabled: bool = Field(description="whether hybrid search is enabled and available")
    degraded: list[str] = Field(
        description="unavailable parts of the search, as codes such as `embedder_unavailable`",
        examples=[[]],
    )


class HybridStatusModel(ResponseModel):
    backend: str = Field(examples=["postgresql"])
    is_requested: bool = Field(description="by USE_HYBRID_SEARCH")
    is_enabled: bool = Field(description="whether it is requested and there is a keyword index")
    reason: str | None = Field(
        None, description="code of the reason why it is requested but not enabled"
    )


blueprint = ApiBlueprint(
    "semantic",
    __name__,
    url_prefix="/api/semantic_search",
    tag={"name": "Semantic search", "description": "Passages by meaning, or by meaning and words."},
)

_DESCRIPTION = (
    "By meaning only, or with `USE_HYBRID_SEARCH` by meaning and keywords: both lists are fused by "
    "reciprocal rank (k = 60). If one of them fails, the other is returned, and `degraded` says "
    "so."
)


@blueprint.post("", errors=(404,), description=_DESCRIPTION)
@context.reads
def search(json_data: SemanticSearchBody) -> SemanticSearchResponse:
    """Search passages by meaning."""
    return _search(json_data, read_scope(json_data.scope))


@blueprint.get("", errors=(404,), description=_DESCRIPTION)
def search_by_address(query_data: SemanticSearchQuery) -> SemanticSearchResponse:
    """Search passages by meaning (GET)."""
    return _search(query_data, query_data.to_scope())


def _search(arguments: _SearchArguments, scope: AskScope | None) -> SemanticSearchResponse:
    outcome = portal_semantic.semantic_search(
        *context.caller(),
        arguments.query,
        limit=arguments.limit,
        threshold=arguments.threshold,
        content_type=arguments.content_type,
        scope=scope,
    )
    return SemanticSearchResponse(
        query=arguments.query,
        results=[_result(result, arguments.query) for result in outcome.results],
        count=len(outcome.results),
        method=outcome.method,
        hybrid_enabled=outcome.is_hybrid_enabled,
        degraded=list(outcome.degraded),
    )


def _result(result: SemanticResult, query: str) -> SemanticResultModel:
    url = chunk_url(UUID(result.document_id), UUID(result.id), query)
    return SemanticResultModel.of(result, url=url)


@blueprint.get("/status")
def show_status() -> HybridStatusModel:
    """Show whether semantic search is hybrid."""
    return HybridStatusModel.of(portal_semantic.status(context.services()))
